//! Going into the sandbox: the child's side, between fork and exec. Only system calls, in the one order that works.

use super::setup::{OmittedSandboxPart, SandboxSetup};
use super::words::{MissingFeature, ProcessLimits, SandboxLevel};
use std::os::fd::AsRawFd as _;

/// What went wrong on the way in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SandboxEntryError {
    pub(crate) step: SandboxEntryStep,
    pub(crate) errno: i32,
}

/// A step on the way in. The last ones are the trial: what must fail inside was tried and did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SandboxEntryStep {
    Limits,
    Namespaces,
    Mounts,
    Privileges,
    Landlock,
    Seccomp,
    TrialWrite,
    TrialRead,
    TrialSignal,
    TrialCall,
    TrialPrivileges,
    TrialNetwork,
}

impl SandboxEntryStep {
    const ALL: [SandboxEntryStep; 12] = [
        SandboxEntryStep::Limits,
        SandboxEntryStep::Namespaces,
        SandboxEntryStep::Mounts,
        SandboxEntryStep::Privileges,
        SandboxEntryStep::Landlock,
        SandboxEntryStep::Seccomp,
        SandboxEntryStep::TrialWrite,
        SandboxEntryStep::TrialRead,
        SandboxEntryStep::TrialSignal,
        SandboxEntryStep::TrialCall,
        SandboxEntryStep::TrialPrivileges,
        SandboxEntryStep::TrialNetwork,
    ];

    pub(crate) fn from_byte(byte: u8) -> SandboxEntryStep {
        *SandboxEntryStep::ALL.get(usize::from(byte)).unwrap_or(&SandboxEntryStep::Landlock)
    }

    /// What the machine has not got if a level with mounts of its own cannot get past this step.
    pub(super) fn missing_feature(self, level: SandboxLevel, errno: i32) -> MissingFeature {
        let error = std::io::Error::from_raw_os_error(errno);
        let what = if self == SandboxEntryStep::Mounts {
            "a read-only view of the machine"
        } else {
            "namespaces of its own"
        };
        let feature = format!(
            "{what}: {error} (for an ordinary user they may be switched off: see `sysctl user.max_user_namespaces \
             kernel.apparmor_restrict_unprivileged_userns`; a container may forbid them too)"
        );
        MissingFeature { level, feature }
    }

    /// What to tell the person about a child that did not get past this step.
    pub(crate) fn explain_error(self, level: SandboxLevel, errno: i32) -> String {
        let error = std::io::Error::from_raw_os_error(errno);
        let set_up = |what: &str| format!("set up the sandbox: {what}: {error}");
        let leaks = |what: &str| {
            format!(
                "the sandbox does not hold: inside it the agent {what} ({error}), so it was not started; {}",
                MissingFeature { level: SandboxLevel::Write, feature: String::new() }.hint()
            )
        };
        match self {
            SandboxEntryStep::Limits => set_up("bound what it uses"),
            SandboxEntryStep::Namespaces | SandboxEntryStep::Mounts => {
                let missing = self.missing_feature(level, errno);
                format!("{missing}; {}", missing.hint())
            }
            SandboxEntryStep::Privileges => set_up("give up privileges"),
            SandboxEntryStep::Landlock => set_up("enter the Landlock rules"),
            SandboxEntryStep::Seccomp => set_up("enter the seccomp filter"),
            SandboxEntryStep::TrialWrite => leaks("could write into a folder that is closed to it"),
            SandboxEntryStep::TrialRead => leaks("could read a file that is hidden from it"),
            SandboxEntryStep::TrialSignal => leaks("could signal its sitter"),
            SandboxEntryStep::TrialCall => leaks("could use a system call that is refused"),
            SandboxEntryStep::TrialPrivileges => leaks("still had privileges it should have lost"),
            SandboxEntryStep::TrialNetwork => leaks("had a network"),
        }
    }
}

/// The end of a step that has set `errno`.
pub(super) fn halt_at<T>(step: SandboxEntryStep) -> Result<T, SandboxEntryError> {
    // SAFETY: always valid in a running thread.
    Err(SandboxEntryError { step, errno: unsafe { *libc::__errno_location() } })
}

/// Goes on if a system call went well.
pub(super) fn check_result(step: SandboxEntryStep, result: libc::c_long) -> Result<(), SandboxEntryError> {
    if result < 0 { halt_at(step) } else { Ok(()) }
}

/// Capabilities that root does not need for work on files and programs, and with which it could get out, or disturb
/// others: read around the rules, listen to the network of others, trace, mount, make devices, load modules, set the clock, outdo others.
const GIVEN_UP: [u8; 27] = [
    2,  // dac_read_search
    9,  // linux_immutable
    12, // net_admin
    13, // net_raw
    14, // ipc_lock
    15, // ipc_owner
    16, // sys_module
    17, // sys_rawio
    19, // sys_ptrace
    20, // sys_pacct
    21, // sys_admin
    22, // sys_boot
    23, // sys_nice
    24, // sys_resource
    25, // sys_time
    26, // sys_tty_config
    27, // mknod
    28, // lease
    29, // audit_write
    30, // audit_control
    32, // mac_override
    33, // mac_admin
    34, // syslog
    37, // audit_read
    38, // perfmon
    39, // bpf
    40, // checkpoint_restore
];

/// The one that the trial looks for.
pub(super) const SYS_ADMIN: libc::c_ulong = 21;

impl SandboxSetup {
    /// Goes inside. On success nothing but exec is left to do.
    ///
    /// # Safety
    /// Only in a freshly forked child: it is bound for ever, also if this fails half-way. Allocates nothing.
    pub(crate) unsafe fn enter_sandbox(&self) -> Result<(), SandboxEntryError> {
        // SAFETY: plain system calls on numbers and on memory that `self` keeps alive.
        unsafe {
            lower_limits(&self.limits)?;
            if let Some(apart) = &self.apart {
                apart.enter_namespaces(
                    self.rules.as_raw_fd(),
                    self.broken == Some(OmittedSandboxPart::Network),
                )?;
            }
            if self.broken != Some(OmittedSandboxPart::Privileges) {
                give_up_privileges()?;
            }
            // Both of the next need it; and no program that gains rights from its file may do so in here.
            check_result(
                SandboxEntryStep::Privileges,
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into(),
            )?;
            if self.broken != Some(OmittedSandboxPart::Landlock) {
                let entered = libc::syscall(libc::SYS_landlock_restrict_self, self.rules.as_raw_fd(), 0);
                check_result(SandboxEntryStep::Landlock, entered)?;
                if let Some(rules) = &self.socket_rules {
                    let entered = libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0);
                    check_result(SandboxEntryStep::Landlock, entered)?;
                }
            }
            if self.broken != Some(OmittedSandboxPart::Seccomp) {
                let program = libc::sock_fprog {
                    len: self.filter.len() as libc::c_ushort, // a few hundred
                    filter: self.filter.as_ptr().cast_mut(),
                };
                let filtered = libc::syscall(
                    libc::SYS_seccomp,
                    libc::c_long::from(libc::SECCOMP_SET_MODE_FILTER),
                    0,
                    &raw const program,
                );
                check_result(SandboxEntryStep::Seccomp, filtered)?;
            }
            self.trial.run_trial()
        }
    }
}

unsafe fn lower_limits(limits: &ProcessLimits) -> Result<(), SandboxEntryError> {
    let all = [
        (libc::RLIMIT_NPROC, limits.processes),
        (libc::RLIMIT_NOFILE, limits.files),
        (libc::RLIMIT_FSIZE, limits.file_bytes),
    ];
    for (what, most) in all {
        if most == 0 {
            continue;
        }
        // SAFETY: the structure is filled by the first call before the second reads it.
        unsafe {
            let mut limit: libc::rlimit = std::mem::zeroed();
            check_result(SandboxEntryStep::Limits, libc::getrlimit(what, &raw mut limit).into())?;
            limit.rlim_max = limit.rlim_max.min(most);
            limit.rlim_cur = limit.rlim_cur.min(most);
            check_result(SandboxEntryStep::Limits, libc::setrlimit(what, &raw const limit).into())?;
        }
    }
    Ok(())
}

/// After exec root has what is left in the bounding set, and anyone else nothing.
unsafe fn give_up_privileges() -> Result<(), SandboxEntryError> {
    // SAFETY: plain numbers.
    unsafe {
        for capability in GIVEN_UP {
            let capability = libc::c_ulong::from(capability);
            let has = libc::prctl(libc::PR_CAPBSET_READ, capability, 0, 0, 0) == 1;
            // An ordinary user may not shrink the set, and cannot gain from it either: exec gives nothing but to root.
            if has && libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) == -1 && libc::geteuid() == 0 {
                return halt_at(SandboxEntryStep::Privileges);
            }
        }
        let cleared = libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        check_result(SandboxEntryStep::Privileges, cleared.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_survives_being_a_byte() {
        for (at, step) in SandboxEntryStep::ALL.into_iter().enumerate() {
            assert_eq!(step as usize, at);
            assert_eq!(SandboxEntryStep::from_byte(step as u8), step);
        }
    }
}
