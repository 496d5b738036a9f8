//! A small interactive program: a line of input, some work, and the next. Well behaved or not.

use std::io::{self, BufRead as _, Write as _};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// How long it works on a prompt: ten looks of the bridge in the tests.
const WORK: Duration = Duration::from_millis(500);

/// Talks on its terminal until it is left.
pub fn main(ways: &[&str]) -> ExitCode {
    let is = |way: &str| ways.contains(&way);
    println!("tiny 1.0");
    if is("slow") {
        wait_for("ready.txt");
    }
    if is("welcome") {
        print("Press Enter to continue… ");
        read();
    }
    if is("never-ready") {
        print("still loading");
        loop {
            std::thread::sleep(Duration::from_secs(60));
        }
    }
    loop {
        print("> ");
        let mut prompt = String::new();
        while !prompt.ends_with("go\n") {
            let Some(line) = read() else { return ExitCode::SUCCESS };
            prompt += &line;
        }
        if is("dies") {
            return ExitCode::from(3);
        }
        println!("working\na quota word: rate limit, usage limit reached, try again later");
        println!("Overwrite? (y/n)\nwe go on and continue\n>\n$\nDo you want to proceed?");
        std::fs::write("prompt.txt", &prompt).expect("the workspace can be written");
        if is("asks") {
            print("Overwrite notes.txt? [y/N] ");
            let answer = read().unwrap_or_default();
            std::fs::write("answer.txt", answer).expect("the workspace can be written");
        }
        if is("danger") {
            println!("$ rm -rf build");
            print("Go ahead? (y/n) ");
            let answer = read().unwrap_or_default();
            std::fs::write("answer.txt", answer).expect("the workspace can be written");
        }
        if is("front") {
            print("Overwrite notes.txt? [y/N] ");
            let out = std::fs::File::create("cat.txt").expect("the workspace can be written");
            Command::new("cat").stdout(Stdio::from(out)).status().expect("cat");
        }
        if !is("quick") {
            std::thread::sleep(WORK);
        }
        println!("all done");
    }
}

/// Waits until the test has made this file.
fn wait_for(name: &str) {
    while !std::path::Path::new(name).exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn print(text: &str) {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).expect("a terminal");
}

fn read() -> Option<String> {
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line),
    }
}
