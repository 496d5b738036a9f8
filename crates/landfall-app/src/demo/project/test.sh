#!/bin/sh
# Runs every check in tests/ against the library in lib/, and says how many passed.
passed=0
failed=0

check() { # what is checked, what is wanted, what came out
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $1: wanted '$2', got '$3'"
    fi
}

for file in lib/*.sh tests/*.sh; do
    . "./$file"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
