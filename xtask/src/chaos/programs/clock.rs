//! Loaded before a program with `LD_PRELOAD`, moves its wall clock by the seconds that the file `LANDFALL_CHAOS_CLOCK` holds.
//! The monotonic clocks stay: a real jump does not move them either.

use std::ffi::{CStr, c_char, c_int, c_long};

#[repr(C)]
pub struct Timespec {
    seconds: c_long,
    nanos: c_long,
}

const REALTIME: c_int = 0;
const REALTIME_COARSE: c_int = 5;
#[cfg(target_arch = "x86_64")]
const CLOCK_GETTIME: c_long = 228;
#[cfg(target_arch = "aarch64")]
const CLOCK_GETTIME: c_long = 113;

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn getenv(name: *const c_char) -> *const c_char;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn read(fd: c_int, buffer: *mut u8, count: usize) -> isize;
    fn close(fd: c_int) -> c_int;
}

fn offset() -> c_long {
    let mut buffer = [0_u8; 32];
    // SAFETY: the name ends with a NUL byte, the path comes from the environment, the buffer is as long as is said.
    let read = unsafe {
        let path = getenv(c"LANDFALL_CHAOS_CLOCK".as_ptr());
        if path.is_null() || CStr::from_ptr(path).is_empty() {
            return 0;
        }
        let fd = open(path, 0o2_000_000); // read only, closed on exec
        if fd < 0 {
            return 0;
        }
        let read = read(fd, buffer.as_mut_ptr(), buffer.len());
        close(fd);
        read
    };
    let text = usize::try_from(read).ok().and_then(|read| std::str::from_utf8(&buffer[..read]).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// # Safety
/// As for the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int {
    // SAFETY: the caller's pointer is handed on as it is.
    let result = unsafe { syscall(CLOCK_GETTIME, clock as c_long, time) };
    if result == 0 && (clock == REALTIME || clock == REALTIME_COARSE) {
        // SAFETY: the kernel has just written it.
        unsafe { (*time).seconds += offset() };
    }
    result as c_int
}
