//! Picks the raw bindings. By default nothing happens here: `src/sys/bindings.rs` is committed. With the
//! feature `bindgen` they are generated afresh from `wrapper.h` into `OUT_DIR/bindings.rs`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=wrapper.h");
    #[cfg(feature = "bindgen")]
    if let Err(error) = generate::bindings() {
        println!("cargo::error=no bindings from wrapper.h: {error}");
    }
}

#[cfg(feature = "bindgen")]
mod generate {
    use std::{cell::RefCell, env, error::Error, fmt::Write, fs, path::Path, rc::Rc};

    use bindgen::callbacks::{EnumVariantCustomBehavior, EnumVariantValue, ParseCallbacks};
    use bindgen::{Builder, EnumVariation, Formatter, RustEdition, RustTarget};

    /// Enums whose values are or-ed together, or stored in a plain integer field: integers on the Rust side too.
    const PLAIN_INTEGERS: &str = ".*_flags|CUhostTaskSyncMode|CUgraphDependencyType";

    /// Notes the names of the result codes: bindgen gives them as constants, which a program cannot list.
    #[derive(Clone, Debug, Default)]
    struct ResultCodes(Rc<RefCell<Vec<String>>>);

    impl ParseCallbacks for ResultCodes {
        fn enum_variant_behavior(
            &self,
            name: Option<&str>,
            variant: &str,
            _: EnumVariantValue,
        ) -> Option<EnumVariantCustomBehavior> {
            if name.is_some_and(|name| name.contains("CUresult")) {
                self.0.borrow_mut().push(variant.to_owned());
            }
            None
        }
    }

    impl ResultCodes {
        fn constant(&self) -> Result<String, Box<dyn Error>> {
            let names = self.0.borrow();
            if names.is_empty() {
                return Err("wrapper.h has no CUresult".into());
            }
            let mut text = String::from(
                "/// Each result code that CUDA 13.5 has, with its name, in the order of `wrapper.h`.\n\
                 pub const RESULT_CODES: &[(CUresult, &::core::ffi::CStr)] = &[\n",
            );
            for name in names.iter() {
                writeln!(text, "    (CUresult::{name}, c\"{name}\"),")?;
            }
            text.push_str("];\n");
            Ok(text)
        }
    }

    pub(super) fn bindings() -> Result<(), Box<dyn Error>> {
        let codes = ResultCodes::default();
        let generated = Builder::default()
            .header("wrapper.h")
            // One fixed target, so that every host generates the same file. What is declared in wrapper.h
            // has the same width and sign on every 64-bit target.
            .clang_arg("--target=x86_64-unknown-linux-gnu")
            .rust_target(RustTarget::stable(88, 0).map_err(|error| error.to_string())?)
            .rust_edition(RustEdition::Edition2024)
            .use_core()
            .generate_comments(false)
            .layout_tests(true)
            .merge_extern_blocks(true)
            .formatter(Formatter::Prettyplease)
            // Open newtypes: a driver may return a number that no header of today lists.
            .default_enum_style(EnumVariation::NewType { is_bitfield: false, is_global: false })
            .constified_enum(PLAIN_INTEGERS)
            .prepend_enum_name(false)
            .translate_enum_integer_types(true)
            .derive_debug(true)
            // Its Debug has the code's name: src/sys/result.rs.
            .no_debug("CUresult")
            .derive_copy(true)
            .derive_default(true)
            .derive_eq(true)
            .derive_hash(true)
            .parse_callbacks(Box::new(codes.clone()))
            // The header comment of bindgen names its version; the file should change only when the bindings do.
            .disable_header_comment()
            .raw_line("// Generated from wrapper.h by `tools/bindings --write`. Do not edit.")
            .generate()?;

        // The layout assertions hold for 64-bit targets, the only ones that have a driver. Elsewhere the crate
        // must still compile, to say that there is none.
        let assertion = "const _: () = {";
        let mut text =
            generated.to_string().replace(assertion, &format!("#[cfg(target_pointer_width = \"64\")]\n{assertion}"));
        text.push_str(&codes.constant()?);

        let out = env::var_os("OUT_DIR").ok_or("cargo has not set OUT_DIR")?;
        fs::write(Path::new(&out).join("bindings.rs"), text)?;
        Ok(())
    }
}
