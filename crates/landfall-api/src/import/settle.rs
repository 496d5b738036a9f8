//! From a list to tasks that can be added: references are looked up, circles found, what is there already left out.
//!
//! An item with open parts is a group. Nobody works on it: it is a draft that holds its parts together. Whoever needs a
//! group needs every part of it, and what a group needs every part of it needs.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    ImportError, ImportFile, ImportItem, ImportLink, ImportPlace, ImportProblem, LeftOut, LeftOutCounts,
    There, words,
};
use crate::{NewTask, TaskRef, WireTaskId};

/// What is to be added.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ImportPlan {
    /// New tasks, in the order of the file.
    pub tasks: Vec<NewTask>,
    /// What was imported before.
    pub there: Vec<There>,
    /// What was read and not taken over.
    pub left_out: Vec<LeftOut>,
}

/// Looks everything up. `known` has the tasks that there are, by what they came from; with `again` they are not minded.
///
/// # Errors
/// A name that means nothing, or needs that go in a circle.
pub fn resolve_import(
    list: ImportFile,
    known: &BTreeMap<String, WireTaskId>,
    again: bool,
) -> Result<ImportPlan, ImportError> {
    let file = list.file.clone();
    ImportIndex::new(list, known, again)
        .and_then(ImportIndex::resolve_items)
        .map_err(|bad| bad.into_import_error(&file))
}

/// The whole list, by place.
struct ImportIndex {
    items: Vec<ImportItem>,
    places: BTreeMap<String, usize>,
    over: BTreeSet<String>,
    /// The place of the item it is a part of.
    parents: Vec<Option<usize>>,
    parts: Vec<Vec<usize>>,
    /// The task it was imported as before.
    before: Vec<Option<WireTaskId>>,
    sources: Vec<String>,
    left_out: LeftOutCounts,
}

impl ImportIndex {
    fn new(
        list: ImportFile,
        known: &BTreeMap<String, WireTaskId>,
        again: bool,
    ) -> Result<Self, ImportProblem> {
        let ImportFile { file: _, format, items, over, left_out } = list;
        let sources: Vec<String> = items.iter().map(|item| format.source(&item.id)).collect();
        let before = sources.iter().map(|source| known.get(source).copied().filter(|_| !again)).collect();
        let places = items.iter().enumerate().map(|(place, item)| (item.id.clone(), place)).collect();
        let many = items.len();
        let mut board = Self {
            items,
            places,
            over,
            parents: vec![None; many],
            parts: vec![Vec::new(); many],
            before,
            sources,
            left_out,
        };
        for place in 0..many {
            let Some(link) = board.items[place].parent.clone() else { continue };
            if let Some(parent) = board.find_item(&link)? {
                board.parents[place] = Some(parent);
                board.parts[parent].push(place);
            }
        }
        board.check_nesting()?;
        Ok(board)
    }

    /// The place of what a link names; none when it is over.
    fn find_item(&self, link: &ImportLink) -> Result<Option<usize>, ImportProblem> {
        match self.places.get(&link.to) {
            Some(place) => Ok(Some(*place)),
            None if self.over.contains(&link.to) => Ok(None),
            None => Err(ImportProblem::new(
                link.place.clone(),
                format!("`{}` is not in the file", words::shorten_for_message(&link.to)),
            )
            .with_hint("write it into the file, or take the reference out")),
        }
    }

    /// Nothing is a part of itself, whatever a file says.
    fn check_nesting(&self) -> Result<(), ImportProblem> {
        let next = |place: usize| self.parents[place].into_iter().collect::<Vec<_>>();
        match find_cycle(self.items.len(), &next) {
            None => Ok(()),
            Some(path) => Err(self.cycle_problem(&path, "the parts go in a circle")),
        }
    }

    fn cycle_problem(&self, path: &[usize], what: &str) -> ImportProblem {
        let names: Vec<String> =
            path.iter().map(|place| words::shorten_for_message(&self.items[*place].id)).collect();
        let place = path.first().map_or(ImportPlace::Whole, |place| self.items[*place].place.clone());
        ImportProblem::new(place, format!("{what}: {}", names.join(" → ")))
            .with_hint("take one of these references out of the file; nothing was added")
    }

    fn is_group(&self, place: usize) -> bool {
        !self.parts[place].is_empty()
    }

    /// What is worked on of an item: itself, or the parts of a group.
    fn leaves_of(&self, place: usize) -> Vec<usize> {
        let (mut leaves, mut open) = (Vec::new(), vec![place]);
        while let Some(place) = open.pop() {
            match self.is_group(place) {
                true => open.extend(self.parts[place].iter().rev()),
                false => leaves.push(place),
            }
        }
        leaves
    }

    /// The item and what it is a part of, from the inside out.
    fn ancestors_with_self(&self, place: usize) -> Vec<usize> {
        std::iter::successors(Some(place), |place| self.parents[*place]).collect()
    }

    fn resolve_items(mut self) -> Result<ImportPlan, ImportProblem> {
        let needs = self.resolve_needs()?;
        let next = |place: usize| needs[place].iter().copied().collect::<Vec<_>>();
        if let Some(path) = find_cycle(self.items.len(), &next) {
            return Err(self.cycle_problem(&path, "the needs go in a circle"));
        }
        let mut numbers: BTreeMap<usize, u32> = BTreeMap::new();
        for (number, place) in (1..).zip((0..self.items.len()).filter(|place| self.before[*place].is_none()))
        {
            numbers.insert(place, number);
        }
        let named = |place: usize| match (self.before[place], numbers.get(&place)) {
            (Some(id), _) => TaskRef::Task(id),
            (None, number) => TaskRef::Batch(number.copied().expect("what is not there is new")),
        };
        let mut settled = ImportPlan { left_out: self.left_out.0.clone(), ..ImportPlan::default() };
        for (place, item) in self.items.iter().enumerate() {
            if let Some(id) = self.before[place] {
                settled.there.push(There { id, item: item.id.clone(), title: item.task.title.clone() });
                continue;
            }
            let mut task = item.task.clone();
            task.source.clone_from(&self.sources[place]);
            task.parent = self.parents[place].map(named);
            task.draft |= self.is_group(place);
            if !self.is_group(place) {
                self.inherit_from_group(&mut task, place);
            }
            task.needs = needs[place].iter().copied().map(named).collect();
            settled.tasks.push(task);
        }
        Ok(settled)
    }

    /// What a part takes over from its group, which no agent ever sees: how urgent it is, and what it is about.
    fn inherit_from_group(&self, task: &mut NewTask, place: usize) {
        let above = &self.ancestors_with_self(place)[1..];
        let Some(nearest) = above.first() else { return };
        task.priority = task.priority.or(above.iter().find_map(|it| self.items[*it].task.priority));
        let titles: Vec<&str> = above.iter().rev().map(|it| self.items[*it].task.title.as_str()).collect();
        let group = &self.items[*nearest].task;
        let criteria: String = group.criteria.iter().map(|it| format!("- {it}\n")).collect();
        let about = words::join_sections(&[("", &titles.join(" › ")), ("", &group.body), ("", &criteria)]);
        let about = &about[..about.floor_char_boundary(ABOUT_BYTES_MAX)];
        task.body = words::join_sections(&[("", &task.body), ("What it is a part of", about)]);
    }

    /// What every item waits for, among the items that are worked on.
    fn resolve_needs(&mut self) -> Result<Vec<BTreeSet<usize>>, ImportProblem> {
        // Looked up once for each item: a deep list asks for the needs of its groups again and again.
        let mut own: Vec<BTreeSet<usize>> = Vec::new();
        for place in 0..self.items.len() {
            let line = self.ancestors_with_self(place);
            let mut found = BTreeSet::new();
            for link in self.items[place].needs.clone() {
                match self.find_item(&link)? {
                    None => self.left_out.add("need that is done already"),
                    Some(other) if other != place && line.contains(&other) => {
                        self.left_out.add("need of a part on its whole");
                    }
                    Some(other) if other != place && self.ancestors_with_self(other).contains(&place) => {
                        self.left_out.add("need of a whole on its part");
                    }
                    Some(other) => found.extend(self.leaves_of(other)),
                }
            }
            own.push(found);
        }
        let mut all = vec![BTreeSet::new(); self.items.len()];
        for place in (0..self.items.len()).filter(|place| !self.is_group(*place)) {
            all[place] = self
                .ancestors_with_self(place)
                .into_iter()
                .flat_map(|above| own[above].iter().copied())
                .collect();
        }
        Ok(all)
    }
}

const ABOUT_BYTES_MAX: usize = 8 * 1024; // it is there for context, in every part of the group

/// A circle among the numbers below `many`, as a path that begins and ends with the same.
fn find_cycle(many: usize, next: &dyn Fn(usize) -> Vec<usize>) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum VisitState {
        Never,
        OnPath,
        Done,
    }
    let mut seen = vec![VisitState::Never; many];
    for start in 0..many {
        if seen[start] != VisitState::Never {
            continue;
        }
        seen[start] = VisitState::OnPath;
        let mut path: Vec<(usize, std::vec::IntoIter<usize>)> = vec![(start, next(start).into_iter())];
        while let Some((at, ways)) = path.last_mut() {
            match ways.next() {
                None => {
                    seen[*at] = VisitState::Done;
                    path.pop();
                }
                Some(to) if seen[to] == VisitState::OnPath => {
                    let from = path.iter().position(|(it, _)| *it == to).expect("it is on the path");
                    return Some(path[from..].iter().map(|(it, _)| *it).chain([to]).collect());
                }
                Some(to) if seen[to] == VisitState::Never => {
                    seen[to] = VisitState::OnPath;
                    path.push((to, next(to).into_iter()));
                }
                Some(_) => {}
            }
        }
    }
    None
}
