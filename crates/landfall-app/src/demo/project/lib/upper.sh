# upper TEXT: TEXT in capital letters.
upper() {
    printf '%s' "$1" | tr '[:lower:]' '[:upper:]'
}
