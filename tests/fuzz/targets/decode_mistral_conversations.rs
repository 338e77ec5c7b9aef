#![no_main]

#[path = "../judge/mod.rs"]
mod judge;
#[path = "../mutate.rs"]
mod mutate;

libfuzzer_sys::fuzz_target!(|data: &[u8]| judge::decode(rethread::message::Dialect::MistralConversations, data));
libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::json(data, size, max_size, seed, 0)
});
