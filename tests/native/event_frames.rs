//! Frames of Amazon's event streams, as ConverseStream sends them.

use crc::{CRC_32_ISO_HDLC, Crc};

const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

fn header(name: &str, value: &str) -> Vec<u8> {
    let mut out = vec![u8::try_from(name.len()).unwrap()];
    out.extend_from_slice(name.as_bytes());
    out.push(7);
    out.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
    out.extend_from_slice(value.as_bytes());
    out
}

/// An event of that type. The name of an exception ends in `Exception`.
pub fn frame(name: &str, payload: &str) -> Vec<u8> {
    let kind = if name.ends_with("Exception") { "exception" } else { "event" };
    let mut headers = header(&format!(":{kind}-type"), name);
    headers.extend(header(":content-type", "application/json"));
    headers.extend(header(":message-type", kind));
    let total = u32::try_from(16 + headers.len() + payload.len()).unwrap();
    let mut out = total.to_be_bytes().to_vec();
    out.extend_from_slice(&u32::try_from(headers.len()).unwrap().to_be_bytes());
    out.extend_from_slice(&CRC.checksum(&out).to_be_bytes());
    out.extend(headers);
    out.extend_from_slice(payload.as_bytes());
    out.extend_from_slice(&CRC.checksum(&out).to_be_bytes());
    out
}
