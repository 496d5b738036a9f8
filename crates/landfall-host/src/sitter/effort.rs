//! How hard a run is at work, told by the kernel and not by what it prints.

use std::collections::HashMap;

use super::sitting::Sitting;

/// CPU time used by the processes of this run that are alive, in the kernel's ticks (a hundredth of a second on
/// almost every machine). Only growth means something: a build that is silent grows, a hung agent does not.
pub fn cpu_ticks(sitting: &Sitting) -> u64 {
    let mut children: HashMap<i32, Vec<(i32, u64)>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((parent, ticks)) = parse(&stat) else { continue };
        children.entry(parent).or_default().push((pid, ticks));
    }
    let mut sum = 0;
    let mut open = vec![sitting.pid];
    while let Some(pid) = open.pop() {
        for (child, ticks) in children.remove(&pid).unwrap_or_default() {
            sum += ticks;
            open.push(child);
        }
    }
    sum
}

/// The parent, and the time used by the process and by children it has waited for.
fn parse(stat: &str) -> Option<(i32, u64)> {
    // The name in parentheses may hold anything, so fields are counted from the last one.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some((fields.get(1)?.parse().ok()?, ticks))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_name_with_parentheses_does_not_confuse_the_fields() {
        let stat = "42 (a) b (c) S 7 1 1 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 99";
        assert_eq!(parse(stat), Some((7, 100)));
        assert_eq!(parse("nonsense"), None);
    }
}
