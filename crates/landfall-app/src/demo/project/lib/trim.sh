# trim TEXT: TEXT without the spaces around it.
trim() {
    printf '%s' "$1" | sed 's/^ *//; s/ *$//'
}
