check 'upper' 'HELLO' "$(upper hello)"
check 'upper of nothing' '' "$(upper '')"
