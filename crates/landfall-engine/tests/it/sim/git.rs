//! A repository in memory: commits with parents, trees as files with contents, three-way merges with real conflicts, a base
//! that moves by compare-and-swap, and a person's branch. It outlives every engine.
//!
//! What the checks of a project would say is a pure function of a tree and of the settings in it. So a tree that landed can
//! be judged again by anyone, at any time.

use std::collections::{BTreeMap, BTreeSet};

use landfall_model::seeded_bugs::{self, SeededBug};
use landfall_model::{Commit, TaskId, Tree};

/// A commit, by the order of its making: whatever it stands on has a smaller number.
pub type Oid = usize;
/// The files of a tree, with what is in each.
pub type Files = BTreeMap<u8, u32>;

/// The file with the settings of the project, by which work is verified.
pub const SETTINGS: u8 = 0;

struct Made {
    parents: Vec<Oid>,
    tree: usize,
    /// Itself and everything it stands on, one bit each.
    reach: Vec<u64>,
}

/// How the base came to be where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    pub from: Option<Oid>,
    pub to: Oid,
    pub by: By,
}

/// Who moved the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    Landing(Vec<TaskId>),
    Person,
    Rebuild,
}

#[derive(Default)]
pub struct Git {
    made: Vec<Made>,
    trees: Vec<Files>,
    known: BTreeMap<Files, usize>,
    /// What lies side by side in one file, by what it became.
    blends: BTreeMap<u32, (u32, u32)>,
    contents: u32,
    /// The base of the store.
    pub base: Option<Oid>,
    /// The person's branch.
    pub branch: Option<Oid>,
    /// Every move of the base.
    pub moves: Vec<Move>,
}

/// What the checks of a project come to, by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    Green,
    Red,
    Broken,
}

/// Files in which both sides changed something.
pub struct Clash(pub Vec<u8>);

pub struct Merged {
    /// One for each head that fits, with its place.
    pub prefixes: Vec<(usize, Oid)>,
    pub left_out: Vec<(usize, Option<Clash>)>,
}

impl Git {
    /// A repository with one commit of so many files.
    pub fn new(files: u8) -> Self {
        let mut git = Self { contents: 1, ..Self::default() };
        let tree: Files = (0..files).map(|file| (file, 0)).collect();
        let root = git.commit(&[], tree);
        git.branch = Some(root);
        git
    }

    pub fn commit(&mut self, parents: &[Oid], files: Files) -> Oid {
        let tree = match self.known.get(&files) {
            Some(tree) => *tree,
            None => {
                self.trees.push(files.clone());
                self.known.insert(files, self.trees.len() - 1);
                self.trees.len() - 1
            }
        };
        let oid = self.made.len();
        let mut reach = vec![0; oid / 64 + 1];
        for parent in parents {
            for (at, bits) in self.made[*parent].reach.iter().enumerate() {
                reach[at] |= bits;
            }
        }
        reach[oid / 64] |= 1 << (oid % 64);
        self.made.push(Made { parents: parents.to_vec(), tree, reach });
        oid
    }

    pub fn parents(&self, oid: Oid) -> &[Oid] {
        &self.made[oid].parents
    }

    pub fn tree(&self, oid: Oid) -> usize {
        self.made[oid].tree
    }

    pub fn files(&self, oid: Oid) -> &Files {
        &self.trees[self.made[oid].tree]
    }

    pub fn is_ancestor(&self, old: Oid, new: Oid) -> bool {
        self.made[new].reach.get(old / 64).is_some_and(|bits| bits >> (old % 64) & 1 == 1)
    }

    /// The youngest commit that both stand on.
    pub fn fork(&self, ours: Oid, theirs: Oid) -> Oid {
        let (ours, theirs) = (&self.made[ours].reach, &self.made[theirs].reach);
        for at in (0..ours.len().min(theirs.len())).rev() {
            let both = ours[at] & theirs[at];
            if both != 0 {
                return at * 64 + 63 - both.leading_zeros() as usize;
            }
        }
        0
    }

    /// Something new for a file. The kind says what the checks think of it, see [`Git::truth`].
    pub fn content(&mut self, kind: u32) -> u32 {
        self.contents += 1;
        self.contents * 8 + kind % 8
    }

    pub fn merge(&self, ours: Oid, theirs: Oid) -> Result<Files, Clash> {
        let fork = self.files(self.fork(ours, theirs));
        self.three_way(fork, self.files(ours), self.files(theirs))
    }

    /// What work changed since `from`, on top of the base and of nothing else.
    pub fn move_over(&self, from: Oid, base: Oid, head: Oid) -> Result<Files, Clash> {
        self.three_way(self.files(from), self.files(base), self.files(head))
    }

    fn three_way(&self, fork: &Files, ours: &Files, theirs: &Files) -> Result<Files, Clash> {
        let mut merged = Files::new();
        let mut clash = Vec::new();
        let names: BTreeSet<u8> = fork.keys().chain(ours.keys()).chain(theirs.keys()).copied().collect();
        for file in names {
            let (old, our, their) = (fork.get(&file), ours.get(&file), theirs.get(&file));
            let new = match () {
                () if our == their || old == their => our,
                () if old == our => their,
                () => {
                    clash.push(file);
                    continue;
                }
            };
            if let Some(new) = new {
                merged.insert(file, *new);
            }
        }
        if clash.is_empty() { Ok(merged) } else { Err(Clash(clash)) }
    }

    /// The merge where the conflicts need nobody: the changes lie side by side.
    pub fn merge_simple(&mut self, ours: Oid, theirs: Oid) -> Option<Files> {
        let Clash(clash) = self.merge(ours, theirs).err()?;
        let fork = self.files(self.fork(ours, theirs)).clone();
        let (mut our, mut their) = (self.files(ours).clone(), self.files(theirs).clone());
        for file in clash {
            let (one, other) = (*our.get(&file)?, *their.get(&file)?);
            if file == SETTINGS || !(one / 8 + other / 8).is_multiple_of(4) {
                return None;
            }
            let blend = self.blend(one, other);
            our.insert(file, blend);
            their.insert(file, blend);
        }
        self.three_way(&fork, &our, &their).ok()
    }

    fn blend(&mut self, one: u32, other: u32) -> u32 {
        let found = self.blends.iter().find(|(_, parts)| **parts == (one, other)).map(|(blend, _)| *blend);
        found.unwrap_or_else(|| {
            let blend = self.content(0);
            self.blends.insert(blend, (one, other));
            blend
        })
    }

    /// Merges heads onto the base one after the other; what does not fit is left out.
    pub fn merge_batch(&mut self, base: Oid, heads: &[Oid]) -> Merged {
        let mut merged = Merged { prefixes: Vec::new(), left_out: Vec::new() };
        let (mut so_far, mut within) = (base, vec![base]);
        for (place, head) in heads.iter().enumerate() {
            let files = match self.merge(so_far, *head) {
                Ok(files) => files,
                Err(clash) => {
                    merged.left_out.push((place, Some(clash)));
                    continue;
                }
            };
            let files = match seeded_bugs::is_active(SeededBug::WrongMergeBase) && within.len() > 1 {
                true => self.files(*head).clone(),
                false => files,
            };
            if files == *self.files(so_far) {
                merged.left_out.push((place, None));
                continue;
            }
            within.push(*head);
            so_far = match seeded_bugs::is_active(SeededBug::SquashDropsParent) && within.len() > 2 {
                true => self.commit(&[base, *head], files),
                false => self.commit(&within, files),
            };
            merged.prefixes.push((place, so_far));
        }
        merged
    }

    /// Moves the base if it is where it is thought to be; else says where it is.
    pub fn set_base(&mut self, to: Oid, from: Option<Oid>, by: By) -> Result<(), Option<Oid>> {
        if self.base != from && !seeded_bugs::is_active(SeededBug::SwapWithoutOld) {
            return Err(self.base);
        }
        self.moves.push(Move { from, to, by });
        self.base = Some(to);
        Ok(())
    }

    /// The settings a tree is verified by when it is merged into this.
    pub fn settings(&self, oid: Oid) -> u32 {
        self.files(oid).get(&SETTINGS).copied().unwrap_or(0)
    }

    /// What the checks would say of a tree, by these settings.
    ///
    /// Contents of kind 0 are good whatever they meet, those of kind 1 are bad alone, some of the others do not go with
    /// each other. Settings of kind 6 let everything pass, those of kind 7 do not run, those of kind 5 want more.
    pub fn truth(&self, tree: usize, settings: u32) -> Truth {
        match settings % 8 {
            6 => return Truth::Green,
            7 => return Truth::Broken,
            _ => {}
        }
        let files = self.trees[tree].iter().filter(|(file, _)| **file != SETTINGS);
        let mut parts: Vec<u32> = files.map(|(_, content)| *content).collect();
        let mut at = 0;
        while let Some(content) = parts.get(at) {
            if let Some((one, other)) = self.blends.get(content) {
                parts.extend([*one, *other]);
            }
            at += 1;
        }
        let bad = |content: &u32| content % 8 == 1 || (settings % 8 == 5 && content % 8 == 2);
        let loud: Vec<u32> = parts.iter().copied().filter(|content| content % 8 > 2).collect();
        // What was written at about the same time may not go together; what is old is settled.
        let quarrel = |one: u32, other: u32| {
            one != other && (one ^ other) / 8 % 7 == 3 && one.abs_diff(other) / 8 < QUARREL_NEAR
        };
        let quarrels = |at: usize| loud[..at].iter().any(|one| quarrel(*one, loud[at]));
        match parts.iter().any(bad) || (0..loud.len()).any(quarrels) {
            true => Truth::Red,
            false => Truth::Green,
        }
    }

    /// The files in which two commits differ.
    pub fn changed(&self, from: Oid, to: Oid) -> BTreeSet<u8> {
        let (from, to) = (self.files(from), self.files(to));
        let names = from.keys().chain(to.keys()).copied();
        names.filter(|file| from.get(file) != to.get(file)).collect()
    }

    /// What a landing should be, made again by walking the parents and comparing file by file: the tree, or why there is
    /// none.
    pub fn recomputed(&self, base: Oid, heads: &[Oid]) -> Result<Files, String> {
        let mut files = self.files(base).clone();
        let mut below = self.walk(base);
        for head in heads {
            let own = self.walk(*head);
            let both = |at: &Oid| own[*at] && below.get(*at) == Some(&true);
            let fork = (0..own.len()).rev().find(both).ok_or("no common commit")?;
            for file in self.changed(fork, *head) {
                let (old, new) = (self.files(fork).get(&file), self.files(*head).get(&file).copied());
                if files.get(&file) != old && files.get(&file).copied() != new {
                    return Err(format!("file {file} is changed by two"));
                }
                match new {
                    Some(new) => files.insert(file, new),
                    None => files.remove(&file),
                };
            }
            below.resize(below.len().max(own.len()), false);
            own.iter().enumerate().filter(|(_, own)| **own).for_each(|(at, _)| below[at] = true);
        }
        Ok(files)
    }

    /// Everything a commit stands on, itself included.
    fn walk(&self, from: Oid) -> Vec<bool> {
        let (mut seen, mut next) = (vec![false; from + 1], vec![from]);
        while let Some(oid) = next.pop() {
            if !std::mem::replace(&mut seen[oid], true) {
                next.extend(&self.made[oid].parents);
            }
        }
        seen
    }
}

const QUARREL_NEAR: u32 = 80;

pub fn name(oid: Oid) -> Commit {
    Commit::new(&format!("c{oid}"))
}

pub fn tree_name(tree: usize) -> Tree {
    Tree::new(&format!("t{tree}"))
}

pub fn oid(commit: &Commit) -> Oid {
    commit.as_str()[1..].parse().expect("made by this repository")
}

pub fn tree_number(tree: &Tree) -> usize {
    tree.as_str()[1..].parse().expect("made by this repository")
}
