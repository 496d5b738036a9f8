//! The kind and the body of an event, from what serde derives for it.
//!
//! An event is an enum. The name of its variant is the kind, and what the variant contains is the body, a JSON object. A
//! variant that contains another enum of events is a group: the kind is the name of the inner variant.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, VariantAccess, Visitor};
use serde::ser::{self, Impossible, SerializeMap, SerializeStruct, SerializeStructVariant, Serializer};
use serde::{Deserialize, Serialize, forward_to_deserialize_any};

use super::FormatErrorKind;

/// The kind and the body of an event.
pub(super) fn write<T: Serialize>(event: &T) -> (&'static str, String) {
    event.serialize(EventSerializer { kind: None }).expect("an event is an enum of objects")
}

/// The event of this kind; none if `T` has no such kind.
pub(super) fn read<'a, T: Deserialize<'a>>(
    kind: &'a str,
    body: &'a str,
) -> Result<Option<T>, FormatErrorKind> {
    match T::deserialize(EventDeserializer { kind, body }) {
        Ok(event) => Ok(Some(event)),
        Err(EventError::UnknownKind) => Ok(None),
        Err(EventError::Body(what)) => Err(FormatErrorKind::Body(what)),
    }
}

#[derive(Debug)]
enum EventError {
    UnknownKind,
    Body(String),
}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKind => f.write_str("unknown kind"),
            Self::Body(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for EventError {}

impl de::Error for EventError {
    fn custom<T: fmt::Display>(what: T) -> Self {
        Self::Body(what.to_string())
    }
}

impl ser::Error for EventError {
    fn custom<T: fmt::Display>(what: T) -> Self {
        Self::Body(what.to_string())
    }
}

impl From<serde_json::Error> for EventError {
    fn from(error: serde_json::Error) -> Self {
        Self::Body(error.to_string())
    }
}

/// Takes the kind from the first variant that contains fields.
struct EventSerializer {
    kind: Option<&'static str>,
}

impl EventSerializer {
    fn into_body(self) -> Result<EventBody, EventError> {
        let kind = self.kind.ok_or(EventError::UnknownKind)?;
        Ok(EventBody { kind, json: b"{".to_vec() })
    }
}

/// The body while its fields are written.
struct EventBody {
    kind: &'static str,
    json: Vec<u8>,
}

impl EventBody {
    fn write_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), EventError> {
        if self.json.len() > 1 {
            self.json.push(b',');
        }
        serde_json::to_writer(&mut self.json, key)?;
        self.json.push(b':');
        Ok(())
    }

    fn write_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EventError> {
        Ok(serde_json::to_writer(&mut self.json, value)?)
    }

    fn finish(mut self) -> Result<(&'static str, String), EventError> {
        self.json.push(b'}');
        Ok((self.kind, String::from_utf8(self.json).expect("JSON is UTF-8")))
    }
}

impl SerializeStruct for EventBody {
    type Ok = (&'static str, String);
    type Error = EventError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), EventError> {
        self.write_key(key)?;
        self.write_value(value)
    }

    fn end(self) -> Result<Self::Ok, EventError> {
        self.finish()
    }
}

impl SerializeStructVariant for EventBody {
    type Ok = (&'static str, String);
    type Error = EventError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), EventError> {
        self.write_key(key)?;
        self.write_value(value)
    }

    fn end(self) -> Result<Self::Ok, EventError> {
        self.finish()
    }
}

/// A body with flattened parts comes as a map.
impl SerializeMap for EventBody {
    type Ok = (&'static str, String);
    type Error = EventError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), EventError> {
        self.write_key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EventError> {
        self.write_value(value)
    }

    fn end(self) -> Result<Self::Ok, EventError> {
        self.finish()
    }
}

/// What is no event.
macro_rules! refuse {
    ($($method:ident($($value:ty)?),)+) => {
        $(fn $method(self $(, _: $value)?) -> Result<Self::Ok, EventError> {
            Err(EventError::UnknownKind)
        })+
    };
}

impl Serializer for EventSerializer {
    type Ok = (&'static str, String);
    type Error = EventError;
    type SerializeSeq = Impossible<Self::Ok, EventError>;
    type SerializeTuple = Impossible<Self::Ok, EventError>;
    type SerializeTupleStruct = Impossible<Self::Ok, EventError>;
    type SerializeTupleVariant = Impossible<Self::Ok, EventError>;
    type SerializeMap = EventBody;
    type SerializeStruct = EventBody;
    type SerializeStructVariant = EventBody;

    refuse! {
        serialize_bool(bool), serialize_i8(i8), serialize_i16(i16), serialize_i32(i32), serialize_i64(i64),
        serialize_u8(u8), serialize_u16(u16), serialize_u32(u32), serialize_u64(u64), serialize_f32(f32),
        serialize_f64(f64), serialize_char(char), serialize_str(&str), serialize_bytes(&[u8]), serialize_none(),
        serialize_unit(), serialize_unit_struct(&'static str),
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<Self::Ok, EventError> {
        Err(EventError::UnknownKind)
    }

    // A kind that says it all has an empty object, so that a later version may add fields.
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        kind: &'static str,
    ) -> Result<Self::Ok, EventError> {
        Ok((kind, "{}".to_owned()))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Self::Ok, EventError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        kind: &'static str,
        value: &T,
    ) -> Result<Self::Ok, EventError> {
        value.serialize(Self { kind: Some(kind) })
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, EventError> {
        Err(EventError::UnknownKind)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, EventError> {
        Err(EventError::UnknownKind)
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, EventError> {
        Err(EventError::UnknownKind)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, EventError> {
        Err(EventError::UnknownKind)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<EventBody, EventError> {
        self.into_body()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<EventBody, EventError> {
        self.into_body()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        kind: &'static str,
        _: usize,
    ) -> Result<EventBody, EventError> {
        Self { kind: Some(kind) }.into_body()
    }
}

#[derive(Clone, Copy)]
struct EventDeserializer<'a> {
    kind: &'a str,
    body: &'a str,
}

impl<'a> EventDeserializer<'a> {
    /// Reads the whole body.
    fn read_body<T>(
        self,
        read: impl FnOnce(&mut serde_json::Deserializer<serde_json::de::StrRead<'a>>) -> serde_json::Result<T>,
    ) -> Result<T, EventError> {
        let mut json = serde_json::Deserializer::from_str(self.body);
        let value = read(&mut json)?;
        json.end()?;
        Ok(value)
    }
}

impl<'de> Deserializer<'de> for EventDeserializer<'de> {
    type Error = EventError;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, EventError> {
        Err(EventError::UnknownKind)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        kinds: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, EventError> {
        if !kinds.contains(&self.kind) {
            return Err(EventError::UnknownKind);
        }
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'a> EnumAccess<'a> for EventDeserializer<'a> {
    type Error = EventError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'a>>(self, seed: S) -> Result<(S::Value, Self), EventError> {
        let kind: StrDeserializer<'a, EventError> = self.kind.into_deserializer();
        Ok((seed.deserialize(kind)?, self))
    }
}

/// The body of an event whose kind says it all. Later versions may add fields.
#[derive(Deserialize)]
struct EmptyBody {}

impl<'a> VariantAccess<'a> for EventDeserializer<'a> {
    type Error = EventError;

    fn unit_variant(self) -> Result<(), EventError> {
        let EmptyBody {} = self.read_body(|json| EmptyBody::deserialize(json))?;
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'a>>(self, seed: S) -> Result<S::Value, EventError> {
        self.read_body(|json| seed.deserialize(json))
    }

    fn tuple_variant<V: Visitor<'a>>(self, len: usize, visitor: V) -> Result<V::Value, EventError> {
        self.read_body(|json| json.deserialize_tuple(len, visitor))
    }

    fn struct_variant<V: Visitor<'a>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, EventError> {
        self.read_body(|json| json.deserialize_struct("body", fields, visitor))
    }
}
