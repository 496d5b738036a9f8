check 'trim' 'a b' "$(trim '  a b ')"
check 'trim of spaces' '' "$(trim '   ')"
