//! Random facts, for tests: serde says what a type consists of, and each part is drawn. So a new kind, field or word is
//! drawn without a word about it here.

use landfall_facts::auto::AutoEvent;
use landfall_facts::checkpoint::CheckpointEvent;
use landfall_facts::convergence::Coverage;
use landfall_facts::haul::IssueBatchEvent;
use landfall_facts::issue::{IssueEvent, IssueSnapshot};
use landfall_facts::pilot::PilotEvent;
use landfall_facts::recovery::{RecoveryEvent, RecoveryOp};
use landfall_facts::sprint::SprintEvent;
use landfall_facts::staged::{JudgeResult, StagedEvent};
use landfall_facts::{
    EngineEvent, Event, Fact, JournalEntry, QueueEvent, TaskId, Timestamp, TurnBlocker, WaitReason,
};
use serde::Deserialize;
use serde::de::value::{Error, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};

/// A source of random facts; the same for the same seed.
#[derive(Debug)]
pub(super) struct Random(u64);

const TEXTS: [&str; 14] = [
    "",
    "a",
    "area/x:y",
    "src/lib.rs",
    "web/",
    "7",
    "12",
    "done",
    "5f0c77",
    "it holds",
    "„groß“ \\ \"genug\" 🦀",
    "line one\n\tline two",
    "\u{0}\u{7f}\u{2028}",
    "T1",
];

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn next_below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound.max(1)).expect("fits")).expect("below the bound")
    }

    /// Numbers that fields leave out or that are special, and any other.
    fn random_number(&mut self, max: u64) -> u64 {
        const NUMBERS: [u64; 9] = [0, 1, 2, 3, 20, 82, 700, 1_000, 3_600_000];
        match self.next_below(12) {
            drawn @ 0..9 => NUMBERS[drawn].min(max),
            9 => max,
            _ => self.next() & max,
        }
    }

    fn random_text(&mut self) -> &'static str {
        TEXTS[self.next_below(TEXTS.len())]
    }

    /// A value of this type. Validating constructors refuse some draws, so it draws again.
    fn draw_value<T: for<'de> Deserialize<'de>>(&mut self) -> T {
        (0..10_000).find_map(|_| T::deserialize(&mut *self).ok()).expect("one of many draws is valid")
    }

    pub(super) fn random_entry(&mut self) -> JournalEntry {
        let at = Timestamp(i64::try_from(self.random_number(1 << 45)).expect("fits"));
        let task = TaskId(self.draw_value::<u32>());
        let of_task = |event| Fact::Task(task, event);
        let fact = match self.next_below(100) {
            0..40 => of_task(self.random_event()),
            40..55 => of_task(Event::Issue(self.random_issue_event())),
            55..72 => of_task(Event::Staged(self.random_staged_event())),
            72..77 => of_task(Event::Recovery(self.random_recovery_event())),
            77..86 => Fact::Engine(self.draw_value()),
            86..93 => Fact::Engine(EngineEvent::Queue(self.draw_value::<QueueEvent>())),
            93..95 => Fact::Engine(EngineEvent::Pilot(self.draw_value::<PilotEvent>())),
            95..97 => Fact::Engine(EngineEvent::Sprint(self.draw_value::<SprintEvent>())),
            97 => Fact::Engine(EngineEvent::Checkpoint(self.draw_value::<CheckpointEvent>())),
            98 => Fact::Engine(EngineEvent::Auto(self.draw_value::<AutoEvent>())),
            _ => Fact::Engine(EngineEvent::Haul(self.draw_value::<IssueBatchEvent>())),
        };
        JournalEntry { at, fact }
    }

    fn random_event(&mut self) -> Event {
        match self.next_below(80) {
            0 => {
                let turn =
                    TurnBlocker::Overlap { with: self.draw_value(), path: self.random_text().to_owned() };
                Event::Waited { wait: WaitReason::Turn(turn), then: self.draw_value() }
            }
            _ => self.draw_value(),
        }
    }

    // Serde does not say which fields flattened parts have, so the variants with such parts are put together here.

    fn random_issue_event(&mut self) -> IssueEvent {
        match self.next_below(12) {
            0 => IssueEvent::Offered { attempt: self.draw_value(), pr: self.draw_value() },
            1 => IssueEvent::Accepted { attempt: self.draw_value(), accepted: self.draw_value() },
            2 | 3 => {
                let seen = IssueSnapshot {
                    number: self.draw_value(),
                    words: self.draw_value(),
                    open: self.draw_value(),
                    phase: self.draw_value(),
                    labels: self.draw_value(),
                    triaged: self.draw_value(),
                    size: self.draw_value(),
                    kind: self.draw_value(),
                    pr: self.draw_value(),
                    spec_file: self.draw_value(),
                    commit: self.draw_value(),
                    reopened: self.draw_value(),
                    parts: self.draw_value(),
                    blockers: self.draw_value(),
                    side_base: self.draw_value(),
                };
                IssueEvent::Seen { attempt: self.draw_value(), seen: Box::new(seen) }
            }
            _ => self.draw_value(),
        }
    }

    fn random_staged_event(&mut self) -> StagedEvent {
        match self.next_below(18) {
            0..2 => {
                let mut judged: JudgeResult = self.draw_value();
                judged.coverage = self.draw_value::<Coverage>();
                StagedEvent::Judged { attempt: self.draw_value(), judged }
            }
            2 => StagedEvent::Measured { attempt: self.draw_value(), extent: self.draw_value() },
            _ => self.draw_value(),
        }
    }

    /// An operation is valid only with what it takes.
    fn random_recovery_event(&mut self) -> RecoveryEvent {
        let mut event = self.draw_value();
        if let RecoveryEvent::Diagnosed { ops, .. } = &mut event {
            let all = [
                RecoveryOp::CommitLeftovers,
                RecoveryOp::AmendSignOff,
                RecoveryOp::RebaseOntoBase,
                RecoveryOp::MergeBase,
                RecoveryOp::PushBranch,
                RecoveryOp::OpenPr,
                RecoveryOp::Comment { text: "it is \"done\"".to_owned() },
                RecoveryOp::SetPhaseLabel { phase: landfall_facts::issue::IssuePhase::Review },
                RecoveryOp::RerunChecks,
                RecoveryOp::MarkReview,
                RecoveryOp::RunCheck { name: "test".to_owned() },
            ];
            *ops = (0..self.next_below(4)).map(|_| all[self.next_below(all.len())].clone()).collect();
        }
        event
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $number:ty,)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let drawn = self.random_number(u64::try_from(<$number>::MAX).unwrap_or(u64::MAX));
            visitor.$visit(<$number>::try_from(drawn).expect("it is at most the largest"))
        })+
    };
}

impl<'de> Deserializer<'de> for &mut Random {
    type Error = Error;

    numbers! {
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64, deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64,
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(serde::de::Error::custom("nothing says what to draw"))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(self.next_below(2) == 1)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(self.random_text())
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(self.random_text())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.next_below(2) == 0 { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let left = self.next_below(4);
        visitor.visit_seq(Elements { random: self, left })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Elements { random: self, left: len })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let left = self.next_below(4);
        visitor.visit_map(Elements { random: self, left })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_map(RandomFields { random: self, fields: fields.iter() })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let variant = variants[self.next_below(variants.len())];
        visitor.visit_enum(RandomVariant { random: self, variant })
    }

    serde::forward_to_deserialize_any! {
        i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple_struct identifier ignored_any
    }
}

struct Elements<'a> {
    random: &'a mut Random,
    left: usize,
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.random).map(Some)
    }
}

impl<'de> MapAccess<'de> for Elements<'_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(&mut *self.random)
    }
}

struct RandomFields<'a> {
    random: &'a mut Random,
    fields: std::slice::Iter<'static, &'static str>,
}

impl<'de> MapAccess<'de> for RandomFields<'_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some(field) = self.fields.next() else { return Ok(None) };
        let field: StrDeserializer<'_, Error> = field.into_deserializer();
        seed.deserialize(field).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(&mut *self.random)
    }
}

struct RandomVariant<'a> {
    random: &'a mut Random,
    variant: &'static str,
}

impl<'a, 'de> EnumAccess<'de> for RandomVariant<'a> {
    type Error = Error;
    type Variant = &'a mut Random;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, &'a mut Random), Error> {
        let variant: StrDeserializer<'_, Error> = self.variant.into_deserializer();
        Ok((seed.deserialize(variant)?, self.random))
    }
}

impl<'de> VariantAccess<'de> for &mut Random {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_struct("", fields, visitor)
    }
}
