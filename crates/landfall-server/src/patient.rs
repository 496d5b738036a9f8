//! A connection that is hung up on when the other side takes nothing for too long.
//!
//! A viewer whose machine sleeps leaves its connection open and reads nothing. Without this it would keep its place
//! for ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A stream whose writes may stand still only so long.
pub(crate) struct WriteTimeoutStream<S> {
    stream: S,
    stall_max: Duration,
    /// Runs while a write stands still.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeoutStream<S> {
    pub(crate) fn new(stream: S, stall_max: Duration) -> Self {
        Self { stream, stall_max, stalled: None }
    }

    fn fail_when_stalled<T>(
        &mut self,
        cx: &mut Context<'_>,
        done: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.stalled = None;
            return done;
        }
        let stall_max = self.stall_max;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(stall_max)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => {
                stalled.as_mut().reset(Instant::now() + stall_max);
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeoutStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.fail_when_stalled(cx, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.fail_when_stalled(cx, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(cx);
        self.fail_when_stalled(cx, done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.fail_when_stalled(cx, done)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::WriteTimeoutStream;

    #[test]
    fn who_takes_nothing_is_hung_up_on_and_who_takes_slowly_is_not() {
        // A stall of several seconds: on a busy machine a short pause of the reader may take two.
        const STALL: Duration = Duration::from_secs(3);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (ours, mut theirs) = tokio::io::duplex(64);
            let mut ours = WriteTimeoutStream::new(ours, STALL);
            let reader = tokio::spawn(async move {
                for _ in 0..10 {
                    tokio::time::sleep(STALL / 9).await; // slow, and never too slow
                    let mut bytes = [0; 64];
                    theirs.read_exact(&mut bytes).await.expect("bytes");
                }
                theirs
            });
            ours.write_all(&[7; 704]).await.expect("taken bit by bit, over longer than one stall");
            let _theirs = reader.await.expect("no panic");
            let error = ours.write_all(&[7; 128]).await.expect_err("nobody takes it");
            assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        });
    }
}
