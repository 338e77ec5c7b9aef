//! `bindgen INPUT.wasm OUT_DIR NAME`: writes NAME_bg.wasm and its glue NAME.js for the web target.

use std::process::ExitCode;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, out_dir, name] = args.as_slice() else {
        eprintln!("usage: bindgen INPUT.wasm OUT_DIR NAME");
        return ExitCode::from(2);
    };
    match generate(input, out_dir, name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bindgen: {error:?}");
            ExitCode::FAILURE
        }
    }
}

fn generate(input: &str, out_dir: &str, name: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut bindgen = Bindgen::new();
    bindgen
        .web(true)?
        .input_path(input)
        .out_name(name)
        // The public types are written by hand, and an entry of the package says where the wasm is.
        .typescript(false)
        .omit_default_module_path(true)
        .remove_producers_section(true);
    Ok(bindgen.generate(out_dir)?)
}
