//! Which system calls are refused: a program for the kernel's seccomp.
//!
//! Built by hand, as it is one list: a compiler for such filters would be larger than the filter, and would let the
//! second calling convention of 64-bit machines pass unseen.

use super::words::SandboxLevel;
use libc::sock_filter;

#[cfg(target_arch = "x86_64")]
const ARCH: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCH: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCH: Option<u32> = None;

/// As `open_tree`, since Linux 6.15: the same number on both architectures.
const OPEN_TREE_ATTR: libc::c_long = 467;

/// Refused whatever their arguments: other processes' memory, the kernel's own programs, keys, mounts, namespaces of
/// others, the clock and the machine itself. Most need a privilege that the sandbox has taken away as well; then it
/// takes two faults to get through.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Refused for any process but the caller, who is 0 as their first argument: when others run, and where their memory lies.
const OWN_ONLY: &[libc::c_long] = &[
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];

/// `IOPRIO_WHO_USER` of the kernel: all processes of a user.
const IO_PRIORITY_OF_USER: u32 = 3;

/// Typing into a terminal as if the person did, and pasting on a console.
const TERMINAL_TRICKS: [u32; 2] = [0x5412, 0x541c]; // TIOCSTI, TIOCLINUX

// The kernel's small machine, as far as we use it.
const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

const NUMBER_AT: u32 = 0;
const ARCH_AT: u32 = 4;
/// Where the low and the high half of an argument lie; both of our architectures are little-endian.
const fn low_half_offset(argument: u32) -> u32 {
    16 + 8 * argument
}
const fn high_half_offset(argument: u32) -> u32 {
    low_half_offset(argument) + 4
}

const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

/// Kinds of sockets that a network namespace keeps apart, or that stay on the machine. Others reach past it: to the host
/// of a virtual machine, to radios.
const KINDS_KEPT_APART: [i32; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// The filter; none if this processor's calls are not known to us.
pub(super) fn build_filter(level: SandboxLevel) -> Option<Vec<sock_filter>> {
    /// Calls of the second convention have this bit in their number.
    const X32: u32 = 0x4000_0000;
    let arch = ARCH?;
    let mut code = vec![
        bpf_statement(LOAD, ARCH_AT),
        bpf_jump(IF_EQUAL, arch, 1, 0),
        // Another convention has other numbers, so nothing said below would hold. Such a program cannot run here.
        bpf_statement(RETURN, libc::SECCOMP_RET_KILL_PROCESS),
        bpf_statement(LOAD, NUMBER_AT),
        bpf_jump(IF_AT_LEAST, X32, 0, 1),
        bpf_statement(RETURN, libc::SECCOMP_RET_KILL_PROCESS),
    ];
    for number in REFUSED {
        code.extend([bpf_jump(IF_EQUAL, call_number(*number), 0, 1), bpf_statement(RETURN, REFUSE)]);
    }
    // Limits of another process: a limit on processor time would be as good as a signal. And the one that marks the run.
    push_rule_for_call(
        &mut code,
        libc::SYS_prlimit64,
        &[
            bpf_statement(LOAD, low_half_offset(2)),
            bpf_jump(IF_EQUAL, 0, 0, 2), // the new limits: none is only a look
            bpf_statement(LOAD, high_half_offset(2)),
            bpf_jump(IF_EQUAL, 0, 5, 0),
            bpf_statement(LOAD, low_half_offset(1)),
            bpf_jump(IF_EQUAL, libc::RLIMIT_LOCKS, 2, 0),
            bpf_statement(LOAD, low_half_offset(0)),
            bpf_jump(IF_EQUAL, 0, 1, 0), // our own
            bpf_statement(RETURN, REFUSE),
            bpf_statement(RETURN, ALLOW),
        ],
    );
    push_rule_for_call(
        &mut code,
        libc::SYS_setrlimit,
        &[
            bpf_statement(LOAD, low_half_offset(0)),
            bpf_jump(IF_EQUAL, libc::RLIMIT_LOCKS, 0, 1),
            bpf_statement(RETURN, REFUSE),
            bpf_statement(RETURN, ALLOW),
        ],
    );
    // The priority of others, of the processor and of the disk: of any other process, or of all the person's processes at
    // once.
    for (number, of_user) in
        [(libc::SYS_setpriority, libc::PRIO_USER), (libc::SYS_ioprio_set, IO_PRIORITY_OF_USER)]
    {
        push_rule_for_call(
            &mut code,
            number,
            &[
                bpf_statement(LOAD, low_half_offset(1)),
                bpf_jump(IF_EQUAL, 0, 0, 2),
                bpf_statement(LOAD, low_half_offset(0)),
                bpf_jump(IF_EQUAL, of_user, 0, 1),
                bpf_statement(RETURN, REFUSE),
                bpf_statement(RETURN, ALLOW),
            ],
        );
    }
    for number in OWN_ONLY {
        let then = [
            bpf_statement(LOAD, low_half_offset(0)),
            bpf_jump(IF_EQUAL, 0, 1, 0),
            bpf_statement(RETURN, REFUSE),
            bpf_statement(RETURN, ALLOW),
        ];
        push_rule_for_call(&mut code, *number, &then);
    }
    push_rule_for_call(
        &mut code,
        libc::SYS_ioctl,
        &[
            bpf_statement(LOAD, low_half_offset(1)),
            bpf_jump(IF_EQUAL, TERMINAL_TRICKS[0], 1, 0),
            bpf_jump(IF_EQUAL, TERMINAL_TRICKS[1], 0, 1),
            bpf_statement(RETURN, REFUSE),
            bpf_statement(RETURN, ALLOW),
        ],
    );
    if level == SandboxLevel::Strict {
        let mut kinds = vec![bpf_statement(LOAD, low_half_offset(0))];
        for kind in KINDS_KEPT_APART {
            kinds.extend([bpf_jump(IF_EQUAL, kind.unsigned_abs(), 0, 1), bpf_statement(RETURN, ALLOW)]);
        }
        kinds.push(bpf_statement(RETURN, libc::SECCOMP_RET_ERRNO | libc::EAFNOSUPPORT as u32));
        push_rule_for_call(&mut code, libc::SYS_socket, &kinds);
    }
    code.push(bpf_statement(RETURN, ALLOW));
    Some(code)
}

/// Runs `then`, which must return, for calls with this number.
fn push_rule_for_call(code: &mut Vec<sock_filter>, number: libc::c_long, then: &[sock_filter]) {
    let skip = u8::try_from(then.len()).expect("a few instructions");
    code.push(bpf_jump(IF_EQUAL, call_number(number), 0, skip));
    code.extend_from_slice(then);
}

fn call_number(number: libc::c_long) -> u32 {
    u32::try_from(number).expect("call numbers are small")
}

fn bpf_statement(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

fn bpf_jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the filter as the kernel would.
    fn run_filter(level: SandboxLevel, arch: u32, number: i64, args: [u64; 6]) -> u32 {
        let code = build_filter(level).expect("tests run where it is known");
        let word = |at: u32| match at {
            NUMBER_AT => u32::try_from(number).expect("small"),
            ARCH_AT => arch,
            at => {
                let arg = args[(at as usize - 16) / 8];
                if (at - 16) % 8 == 0 { arg as u32 } else { (arg >> 32) as u32 }
            }
        };
        let (mut at, mut held) = (0, 0);
        loop {
            let sock_filter { code: what, jt, jf, k } = code[at];
            at += 1;
            match what {
                LOAD => held = word(k),
                IF_EQUAL => at += usize::from(if held == k { jt } else { jf }),
                IF_AT_LEAST => at += usize::from(if held >= k { jt } else { jf }),
                RETURN => return k,
                other => panic!("unknown instruction {other}"),
            }
        }
    }

    fn call_of(number: i64, args: [u64; 6]) -> u32 {
        run_filter(SandboxLevel::Write, ARCH.expect("known"), number, args)
    }

    const RUN_MARK: u64 = libc::RLIMIT_LOCKS as u64;

    #[test]
    fn only_the_strict_filter_knows_kinds_of_sockets() {
        let socket = |level, kind: i32| {
            let args = [u64::try_from(kind).expect("small"), 1, 0, 0, 0, 0];
            run_filter(level, ARCH.expect("known"), libc::SYS_socket, args)
        };
        for kind in KINDS_KEPT_APART {
            assert_eq!(
                (socket(SandboxLevel::Write, kind), socket(SandboxLevel::Strict, kind)),
                (ALLOW, ALLOW),
                "{kind}"
            );
        }
        for kind in [libc::AF_VSOCK, libc::AF_BLUETOOTH, libc::AF_PACKET, libc::AF_ALG] {
            assert_eq!(socket(SandboxLevel::Write, kind), ALLOW, "{kind}");
            assert_eq!(socket(SandboxLevel::Strict, kind) & 0xffff, libc::EAFNOSUPPORT as u32, "{kind}");
        }
    }

    #[test]
    fn what_is_listed_is_refused_and_the_rest_is_not() {
        for number in REFUSED {
            assert_eq!(call_of(*number, [0; 6]), REFUSE, "{number}");
        }
        for number in
            [libc::SYS_read, libc::SYS_openat, libc::SYS_execve, libc::SYS_clone3, libc::SYS_unshare]
        {
            assert_eq!(call_of(number, [0; 6]), ALLOW, "{number}");
        }
    }

    #[test]
    fn another_calling_convention_is_the_end() {
        assert_eq!(
            run_filter(SandboxLevel::Write, 0x4000_0003, libc::SYS_read, [0; 6]),
            libc::SECCOMP_RET_KILL_PROCESS
        );
        assert_eq!(call_of(libc::SYS_read | 0x4000_0000, [0; 6]), libc::SECCOMP_RET_KILL_PROCESS);
    }

    #[test]
    fn one_may_change_oneself_and_look_at_others() {
        let limit = |pid, new| call_of(libc::SYS_prlimit64, [pid, 0, new, 0, 0, 0]);
        assert_eq!((limit(0, 8), limit(7, 0)), (ALLOW, ALLOW));
        assert_eq!((limit(7, 8), limit(7, 8 << 32)), (REFUSE, REFUSE));
        // The limit by which the run is known stays as it is.
        let mark = |pid, new| call_of(libc::SYS_prlimit64, [pid, RUN_MARK, new, 0, 0, 0]);
        assert_eq!((mark(0, 0), mark(0, 8), mark(0, 8 << 32)), (ALLOW, REFUSE, REFUSE));
        let set = |limit| call_of(libc::SYS_setrlimit, [limit, 8, 0, 0, 0, 0]);
        assert_eq!((set(0), set(RUN_MARK), set(RUN_MARK | 1 << 32)), (ALLOW, REFUSE, REFUSE));
        let renice = |which, who| call_of(libc::SYS_setpriority, [which, who, 5, 0, 0, 0]);
        assert_eq!((renice(0, 0), renice(1, 0)), (ALLOW, ALLOW));
        assert_eq!((renice(0, 7), renice(2, 0), renice(2, 7)), (REFUSE, REFUSE, REFUSE));
        let disk = |which, who| call_of(libc::SYS_ioprio_set, [which, who, 5, 0, 0, 0]);
        assert_eq!((disk(1, 0), disk(2, 0)), (ALLOW, ALLOW));
        assert_eq!((disk(1, 7), disk(3, 0), disk(3, 7)), (REFUSE, REFUSE, REFUSE));
        for number in OWN_ONLY {
            let scheduled = |pid| call_of(*number, [pid, 0, 0, 0, 0, 0]);
            assert_eq!((scheduled(0), scheduled(7)), (ALLOW, REFUSE), "{number}");
        }
        let ioctl = |what| call_of(libc::SYS_ioctl, [0, what, 0, 0, 0, 0]);
        assert_eq!((ioctl(0x5401), ioctl(0x5412), ioctl(0x541c)), (ALLOW, REFUSE, REFUSE));
        // The kernel looks at the low half of the number only, and so do we.
        assert_eq!(ioctl(0x1_0000_5412), REFUSE);
    }
}
