//! How values are stored: each field in its order, nothing between them. The layout is that of
//! [postcard](https://postcard.jamesmunns.com/wire-format): numbers as varints, lengths before texts and lists, enums by number.
//!
//! Reading cannot stop half-way: what is broken reads as nothing up to the end, and the [`Reader`] says so. So a type is read by
//! a row of calls, with nothing to undo between them.

/// A type that is stored.
pub trait Stored: Sized {
    /// Writes it behind what is there.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads one. It means something only if the reader is not broken by then.
    fn read(from: &mut Reader<'_>) -> Self;
}

/// Bytes that are read.
pub struct Reader<'a> {
    rest: &'a [u8],
    broken: bool,
    /// How many lists it is in.
    depth: u32,
}

/// No value holds lists in lists to that depth; bytes that say so would use up the stack.
const DEEPEST: u32 = 64;

impl<'a> Reader<'a> {
    /// At the beginning.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, broken: false, depth: 0 }
    }

    /// Whether the bytes ended early or said what no value says.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// From here on there is nothing but zeros.
    pub(crate) fn fail(&mut self) {
        self.rest = &[];
        self.broken = true;
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((byte, rest)) = self.rest.split_first() else {
            self.fail();
            return 0;
        };
        self.rest = rest;
        *byte
    }

    fn number(&mut self, most: u64) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 && value <= most && (shift < 63 || byte < 2) {
                return value;
            }
            shift += 7;
            if byte < 0x80 || shift > 63 {
                self.fail();
                return 0;
            }
        }
    }

    /// How many bytes or items follow; none of these takes less than a byte.
    #[allow(clippy::cast_possible_truncation)] // no more than there are bytes
    fn count(&mut self) -> usize {
        self.number(self.rest.len() as u64) as usize
    }
}

fn write_number(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80); // proof: eight bytes
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]); // proof: eight bytes
}

impl Stored for u64 {
    fn write(&self, out: &mut Vec<u8>) {
        write_number(*self, out);
    }

    fn read(from: &mut Reader<'_>) -> Self {
        from.number(u64::MAX)
    }
}

impl Stored for u32 {
    fn write(&self, out: &mut Vec<u8>) {
        write_number(u64::from(*self), out);
    }

    #[allow(clippy::cast_possible_truncation)] // no more than that is read
    fn read(from: &mut Reader<'_>) -> Self {
        from.number(u64::from(Self::MAX)) as Self
    }
}

impl Stored for i64 {
    fn write(&self, out: &mut Vec<u8>) {
        write_number(((self << 1) ^ (self >> 63)).cast_unsigned(), out);
    }

    fn read(from: &mut Reader<'_>) -> Self {
        let value = u64::read(from);
        (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
    }
}

impl Stored for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn read(from: &mut Reader<'_>) -> Self {
        let byte = from.byte();
        if byte > 1 {
            from.fail();
        }
        byte == 1
    }
}

impl Stored for String {
    fn write(&self, out: &mut Vec<u8>) {
        write_number(self.len() as u64, out);
        out.extend_from_slice(self.as_bytes());
    }

    fn read(from: &mut Reader<'_>) -> Self {
        let length = from.count();
        if let Some((bytes, rest)) = from.rest.split_at_checked(length)
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            from.rest = rest;
            return text.to_owned();
        }
        from.fail();
        Self::new()
    }
}

impl<T: Stored> Stored for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_some().write(out);
        if let Some(value) = self {
            value.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Self {
        if bool::read(from) { Some(T::read(from)) } else { None }
    }
}

impl<T: Stored> Stored for Box<T> {
    fn write(&self, out: &mut Vec<u8>) {
        (**self).write(out);
    }

    fn read(from: &mut Reader<'_>) -> Self {
        Self::new(T::read(from))
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        write_number(self.len() as u64, out);
        for item in self {
            item.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Self {
        let mut list = Self::new();
        from.depth += 1;
        if from.depth > DEEPEST {
            from.fail();
        }
        for _ in 0..from.count() {
            if from.broken {
                break;
            }
            list.push(T::read(from));
        }
        from.depth -= 1;
        list
    }
}

impl<A: Stored, B: Stored> Stored for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(from: &mut Reader<'_>) -> Self {
        (A::read(from), B::read(from))
    }
}

/// Says how a type is stored: the fields of a struct in their order, the variants of an enum by their numbers.
macro_rules! stored {
    (struct $name:ident { $($field:ident),* $(,)? }) => {
        impl $crate::stored::Stored for $name {
            fn write(&self, out: &mut Vec<u8>) {
                $($crate::stored::Stored::write(&self.$field, out);)*
            }

            fn read(from: &mut $crate::stored::Reader<'_>) -> Self {
                Self { $($field: $crate::stored::Stored::read(from)),* }
            }
        }
    };
    (struct $name:ident($inner:ty)) => {
        impl $crate::stored::Stored for $name {
            fn write(&self, out: &mut Vec<u8>) {
                $crate::stored::Stored::write(&self.0, out);
            }

            fn read(from: &mut $crate::stored::Reader<'_>) -> Self {
                Self($crate::stored::Stored::read(from))
            }
        }
    };
    (enum $name:ident { $($number:literal => $variant:ident $(($value:ident))? $({ $($field:ident),* })?),* $(,)? }) => {
        impl $crate::stored::Stored for $name {
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $(($value))? $({ $($field),* })? => {
                        out.push($number);
                        $($crate::stored::Stored::write($value, out);)?
                        $($($crate::stored::Stored::write($field, out);)*)?
                    })*
                }
            }

            fn read(from: &mut $crate::stored::Reader<'_>) -> Self {
                match from.byte() {
                    $($number => {
                        $(let $value = $crate::stored::Stored::read(from);)?
                        $($(let $field = $crate::stored::Stored::read(from);)*)?
                        Self::$variant $(($value))? $({ $($field),* })?
                    })*
                    _ => {
                        from.fail();
                        Self::read(from)
                    }
                }
            }
        }
    };
}
pub(crate) use stored;

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;
    use proptest::prelude::*;

    fn written(value: &impl Stored) -> Vec<u8> {
        let mut out = Vec::new();
        value.write(&mut out);
        out
    }

    /// The value, if the bytes say one.
    fn read<T: Stored>(bytes: &[u8]) -> Option<T> {
        let mut from = Reader::new(bytes);
        let value = T::read(&mut from);
        (!from.is_broken()).then_some(value)
    }

    #[test]
    fn writes_as_postcard_does() {
        assert_eq!(written(&300_u32), [0xac, 0x02]);
        assert_eq!(written(&u64::MAX), [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
        assert_eq!(
            [-1_i64, 1, 63, -64, 64].map(|value| written(&value)),
            [vec![1], vec![2], vec![126], vec![127], vec![128, 1]]
        );
        assert_eq!(written(&Some((true, "é".to_owned()))), [1, 1, 2, 0xc3, 0xa9]);
        assert_eq!(written(&vec![None::<u64>, Some(5)]), [2, 0, 1, 5]);
    }

    #[test]
    fn says_what_is_broken() {
        assert_eq!(read::<u32>(&[0xff, 0xff, 0xff, 0xff, 0x0f]), Some(u32::MAX));
        assert_eq!(read::<u32>(&[0xff, 0xff, 0xff, 0xff, 0x1f]), None, "too large");
        assert_eq!(read::<u64>(&[0xff; 9]), None, "too short");
        assert_eq!(read::<u64>(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]), None, "65 bits");
        assert_eq!(read::<u64>(&[0x80; 20]), None, "no end");
        assert_eq!(read::<bool>(&[2]), None, "neither");
        assert_eq!(read::<Option<u64>>(&[2, 1]), None, "neither");
        assert_eq!(read::<String>(&[2, b'a']), None, "too short");
        assert_eq!(read::<String>(&[1, 0xff]), None, "no UTF-8");
        assert_eq!(read::<Vec<u64>>(&[0xff, 0xff, 0xff, 0xff, 0x0f, 1]), None, "longer than there are bytes");
        assert_eq!(read::<crate::message::Role>(&[4]), None, "no such variant");
    }

    #[test]
    fn what_is_nested_too_deeply_is_broken() {
        // A shape with one slot, which is a shape with one slot.
        let nested = |depth: usize| [1, 0, 10].repeat(depth).into_iter().chain([0]).collect::<Vec<u8>>();
        assert!(read::<crate::message::WireTemplate>(&nested(10)).is_some());
        assert!(read::<crate::message::WireTemplate>(&nested(1_000_000)).is_none());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in any::<(u64, (u32, (i64, (bool, (String, Vec<Option<String>>)))))>()) {
            let bytes = written(&value);
            prop_assert_eq!(read(&bytes), Some(value));
            for end in 0..bytes.len() {
                prop_assert_eq!(read::<(u64, (u32, (i64, (bool, (String, Vec<Option<String>>)))))>(&bytes[..end]), None);
            }
        }
    }
}
