//! What TCP connections have received, asked of the kernel by `sock_diag`.
//!
//! It answers everybody about the sockets of their own network namespace, which agents share with us: the one level of the
//! sandbox that has another namespace has no network in it. Whose socket it is, `/proc/<pid>/fd` tells. That can be read of
//! processes of the same user, but for those that forbid to be looked at; then nothing is known.

use super::effort::TcpConnection;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use std::collections::HashMap;
use std::io;
use std::time::Duration;

const HEADER: usize = 16; // struct nlmsghdr
const REQUEST: usize = 56; // struct inet_diag_req_v2
const MESSAGE: usize = 72; // struct inet_diag_msg
const COOKIE_AT: usize = 44;
const INODE_AT: usize = 68;
const RECEIVED_AT: usize = 128; // tcpi_bytes_received in struct tcp_info, since Linux 4.1
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const REQUEST_AND_DUMP: u16 = 0x301;
const DONE: u16 = 3;
const ERROR: u16 = 2;
const INET_DIAG_INFO: u16 = 2;
/// Established, and those that only the other side has closed.
const STATES: u32 = 1 << 1 | 1 << 8;
const ANSWER_MAX: Duration = Duration::from_secs(2); // it is made as it is read; more means that it does not come
const ROUNDS_MAX: usize = 4_096; // some hundred thousand connections

/// Every open TCP connection in our network namespace, by the inode of its socket.
pub(super) fn list_connections() -> io::Result<HashMap<u64, TcpConnection>> {
    let mut found = HashMap::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        dump_family(u8::try_from(family).expect("they are small"), &mut found)?;
    }
    Ok(found)
}

fn dump_family(family: u8, found: &mut HashMap<u64, TcpConnection>) -> io::Result<()> {
    let socket =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_MAX))?;
    let mut request = Vec::with_capacity(HEADER + REQUEST);
    request.extend(u32::try_from(HEADER + REQUEST).expect("small").to_ne_bytes());
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend(REQUEST_AND_DUMP.to_ne_bytes());
    request.extend([0; 8]); // sequence and sender
    let info = 1 << (INET_DIAG_INFO - 1);
    request.extend([family, u8::try_from(libc::IPPROTO_TCP).expect("small"), info, 0]);
    request.extend(STATES.to_ne_bytes());
    request.resize(HEADER + REQUEST, 0); // of any address
    send(&socket, &request, SendFlags::empty())?;
    let mut buffer = vec![0u8; 64 * 1024];
    for _ in 0..ROUNDS_MAX {
        let (read, _) = recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        if !take_part(&buffer[..read.min(buffer.len())], found)? {
            return Ok(());
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Takes in one part of the answer; whether there is more.
fn take_part(mut part: &[u8], found: &mut HashMap<u64, TcpConnection>) -> io::Result<bool> {
    while let (Some(length), Some(kind)) = (u32_at(part, 0), u16_at(part, 4)) {
        let length = length as usize;
        let Some(message) = part.get(HEADER..length) else { break };
        match kind {
            DONE => return Ok(false),
            ERROR => {
                let code = u32_at(message, 0).map_or(0, u32::cast_signed);
                return Err(io::Error::from_raw_os_error(-code));
            }
            _ => {
                if let Some((inode, connection)) = parse_connection(message) {
                    found.insert(inode, connection);
                }
            }
        }
        part = part.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(true)
}

fn parse_connection(message: &[u8]) -> Option<(u64, TcpConnection)> {
    let inode = u64::from(u32_at(message, INODE_AT)?);
    let cookie = u64_at(message, COOKIE_AT)?;
    let mut attributes = message.get(MESSAGE..)?;
    loop {
        let (length, kind) = (usize::from(u16_at(attributes, 0)?), u16_at(attributes, 2)?);
        if kind == INET_DIAG_INFO {
            let received = u64_at(attributes.get(4..length)?, RECEIVED_AT)?;
            return Some((inode, TcpConnection { cookie, received }));
        }
        attributes = attributes.get(length.max(4).next_multiple_of(4)..)?;
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// The inodes of the sockets that a process has open. An error: it is not ours to know.
pub(super) fn sockets_of(pid: i32) -> io::Result<Vec<u64>> {
    let mut inodes = Vec::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        let Ok(target) = entry.and_then(|entry| std::fs::read_link(entry.path())) else {
            continue; // it was closed as we looked
        };
        let name = target.to_str().and_then(|name| name.strip_prefix("socket:[")?.strip_suffix(']'));
        inodes.extend(name.and_then(|inode| inode.parse::<u64>().ok()));
    }
    Ok(inodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::os::fd::AsRawFd as _;

    #[test]
    fn bytes_received_are_told_by_connection_and_grow() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of our own");
        let mut ours = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        let (mut theirs, _) = listener.accept().expect("it connected");
        let link = std::fs::read_link(format!("/proc/self/fd/{}", ours.as_raw_fd())).expect("it is open");
        let own = i32::try_from(std::process::id()).expect("small");
        let inodes = sockets_of(own).expect("we may look at ourselves");
        let inode = *inodes
            .iter()
            .find(|inode| link.to_str() == Some(&format!("socket:[{inode}]")))
            .expect("among ours");
        let look = || list_connections().expect("the kernel answers")[&inode];
        let before = look();
        assert_eq!(before.received, 0);
        let mut bytes = [0; 777];
        theirs.write_all(&bytes).expect("it is connected");
        ours.read_exact(&mut bytes).expect("they were sent");
        let after = look();
        assert_eq!((after.cookie, after.received), (before.cookie, 777));
        drop((ours, theirs));
        assert!(!list_connections().expect("the kernel answers").contains_key(&inode));
    }

    #[test]
    fn an_answer_that_is_cut_off_is_no_panic() {
        for length in 0..200u32 {
            let mut bytes = length.to_ne_bytes().to_vec();
            bytes.resize(150, 1);
            let mut found = HashMap::new();
            let _ = take_part(&bytes, &mut found); // whatever it makes of it
        }
    }
}
