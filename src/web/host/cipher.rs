//! The platform's WebCrypto as a cipher: keys are handles that JavaScript keeps.

use crate::error::{Error, ErrorCode, Result};
use crate::store::{Cipher, PlacedValue, StoreFuture, UnwrappedKey};
use crate::web::conversion::untrusted_value::{bytes, items, member, reason_of};
use crate::web::promise::await_settled;
use bytes::Bytes;
use js_sys::{Array, Function, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};

/// The object that `cipherOf` of `js/encryption.js` returns.
pub struct WebCipher(JsValue);

fn failed(what: &JsValue) -> Error {
    let message = format!("the platform's encryption failed, and nothing was written: {}", reason_of(what));
    Error::new(ErrorCode::StoreError, message)
}

fn array_of(value: &[u8]) -> JsValue {
    Uint8Array::from(value).into()
}

fn list_of(values: impl IntoIterator<Item = JsValue>) -> JsValue {
    values.into_iter().collect::<Array>().into()
}

/// Returns the bytes that the cipher returned; none for null.
fn bytes_of(value: &JsValue) -> Result<Option<Bytes>> {
    Ok(bytes("an encrypted value", value)?.map(Bytes::from))
}

fn required(value: &JsValue) -> Result<Bytes> {
    bytes_of(value)?.ok_or_else(|| failed(value))
}

impl WebCipher {
    /// Makes a cipher of the option. `cipher_of` reads it.
    ///
    /// # Errors
    /// `config_invalid`.
    pub fn new(option: &JsValue, cipher_of: &Function) -> Result<Self> {
        let cipher = cipher_of.call1(&JsValue::NULL, option);
        Ok(Self(cipher.map_err(|thrown| Error::config(reason_of(&thrown)))?))
    }

    async fn call(&self, method: &str, arguments: &[JsValue]) -> Result<JsValue> {
        let function: Function = member(&self.0, method).dyn_into().map_err(|value| failed(&value))?;
        let arguments: Array = arguments.iter().collect();
        let returned = function.apply(&self.0, &arguments).map_err(|thrown| failed(&thrown))?;
        await_settled(returned).await.map_err(|thrown| failed(&thrown))
    }

    async fn call_with_values(&self, method: &str, values: Vec<PlacedValue<JsValue>>) -> Result<Vec<JsValue>> {
        let count = u32::try_from(values.len()).unwrap_or(u32::MAX);
        if count == 0 {
            return Ok(Vec::new());
        }
        let values =
            values.into_iter().map(|value| list_of([value.key, array_of(&value.place), array_of(&value.value)]));
        let returned = self.call(method, &[list_of(values)]).await?;
        let returned = items("the encrypted values", &returned, count)?.unwrap_or_default();
        if returned.len() == count as usize { Ok(returned) } else { Err(failed(&JsValue::NULL)) }
    }
}

impl Cipher for WebCipher {
    type Key = JsValue;

    /// A nonce of 12 bytes and a tag of 16.
    const SEALED_BYTES: usize = 28;

    fn generate(&self, place: Bytes) -> StoreFuture<'_, (JsValue, Bytes)> {
        Box::pin(async move {
            let made = Array::from(&self.call("generate", &[array_of(&place)]).await?);
            Ok((made.get(0), required(&made.get(1))?))
        })
    }

    fn unwrap_key(&self, wrapped: Bytes, place: Bytes) -> StoreFuture<'_, Option<UnwrappedKey<JsValue>>> {
        Box::pin(async move {
            let unwrapped = self.call("unwrap", &[array_of(&wrapped), array_of(&place)]).await?;
            if unwrapped.is_null() {
                return Ok(None);
            }
            let unwrapped = Array::from(&unwrapped);
            Ok(Some(UnwrappedKey { key: unwrapped.get(0), rewrapped: bytes_of(&unwrapped.get(1))? }))
        })
    }

    fn seal(&self, values: Vec<PlacedValue<JsValue>>) -> StoreFuture<'_, Vec<Bytes>> {
        Box::pin(async move { self.call_with_values("seal", values).await?.iter().map(required).collect() })
    }

    fn open(&self, values: Vec<PlacedValue<JsValue>>) -> StoreFuture<'_, Vec<Option<Bytes>>> {
        Box::pin(async move { self.call_with_values("open", values).await?.iter().map(bytes_of).collect() })
    }
}
