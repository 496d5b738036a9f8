//! How the program is linked while it is developed and tested.
//!
//! A debug build has two hundred thousand addresses that the loader fixes at each start, in memory that it must copy for that.
//! Tests start the program tens of thousands of times: it is linked to a fixed address there. A release build keeps the random one.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "debug") && is("CARGO_CFG_TARGET_OS", "linux") {
        println!("cargo::rustc-link-arg=-no-pie");
    }
}
