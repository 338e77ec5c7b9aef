//! Wire objects as shapes: taking one apart, and writing it again.

use crate::json::{JsonRef, JsonStr};
use crate::message::{Shape, Slot};

/// Takes an object apart: `slot` names the holes, every other member is kept as it came.
pub fn shape_of(object: JsonRef<'_>, mut slot: impl FnMut(&str, JsonRef<'_>) -> Option<Slot>) -> Shape {
    Shape(
        object
            .entries()
            .filter_map(|(key, value)| {
                let name = key.as_text()?;
                let slot = slot(&name, value).unwrap_or_else(|| Slot::Raw(value.to_owned()));
                Some((key.as_json_str().unwrap_or_else(|| JsonStr::new(&name)), slot))
            })
            .collect(),
    )
}

/// Writes an object of that shape. `fill` writes a hole's value, or gives false: then the member goes.
/// It is called with the member's name.
pub fn write_shape(out: &mut String, shape: &Shape, fill: &mut dyn FnMut(&str, &Slot, &mut String) -> bool) {
    out.push('{');
    let mut first = true;
    for (key, slot) in &shape.0 {
        let start = out.len();
        if !first {
            out.push(',');
        }
        out.push_str(key.token());
        out.push(':');
        let written = match slot {
            Slot::Shape(inner) => {
                write_shape(out, inner, fill);
                true
            }
            _ => fill(&key.decode(), slot, out),
        };
        if written {
            first = false;
        } else {
            out.truncate(start);
        }
    }
    out.push('}');
}
