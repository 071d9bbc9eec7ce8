//! Picks the raw bindings. By default nothing happens here: `src/sys/bindings.rs` is committed, and
//! so is `src/sys/more_bindings.rs`. With the feature `bindgen` they are generated afresh from
//! `wrapper.h` and `wrapper-more.h` into `OUT_DIR`.

/// Each header, the bindings that are made from it, and the list of exported names.
const HEADERS: [[&str; 3]; 2] =
    [["wrapper.h", "bindings.rs", "symbols.rs"], ["wrapper-more.h", "more_bindings.rs", "more.rs"]];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for [header, ..] in HEADERS {
        println!("cargo::rerun-if-changed={header}");
    }
    #[cfg(not(feature = "bindgen"))]
    HEADERS.into_iter().for_each(in_a_checkout);
    #[cfg(feature = "bindgen")]
    if let Err(error) = generate::bindings().and_then(|()| generate::more()) {
        println!("cargo::error=no bindings: {error}");
    }
}

/// Says which step was forgotten, where the compiler would only miss a name: an entry point is
/// declared in the header, then `tools/bindings --write` is run, then it is listed. A package has no
/// tools and looks at nothing.
#[cfg(not(feature = "bindgen"))]
fn in_a_checkout([header, bindings, list]: [&str; 3]) {
    use std::{fs::read_to_string, path::Path};

    if !Path::new("tools/bindings").exists() {
        return;
    }
    let [bindings, list] = [bindings, list].map(|file| format!("src/sys/{file}"));
    println!("cargo::rerun-if-changed={list}");
    println!("cargo::rerun-if-changed={bindings}");
    let (Ok(declarations), Ok(listed), Ok(generated)) =
        (read_to_string(header), read_to_string(&list), read_to_string(&bindings))
    else {
        return;
    };
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter(|word| word.starts_with("PFN_cu")).map(str::to_owned).collect()
    };
    let (declared, generated) = (words(&declarations), words(&generated));
    for (at, line) in listed.lines().enumerate() {
        for name in words(line).iter().filter(|name| !declared.contains(name)) {
            println!(
                "cargo::error={list}:{}: {header} does not declare {name}: add `typedef CUresult \
                 (*{name})(...);` to it and run tools/bindings --write",
                at + 1
            );
        }
    }
    for (at, line) in declarations.lines().enumerate() {
        for name in words(line).iter().filter(|name| !generated.contains(name)) {
            println!(
                "cargo::error={header}:{}: {bindings} lacks {name}: run tools/bindings --write",
                at + 1
            );
        }
    }
}

#[cfg(feature = "bindgen")]
mod generate {
    use std::{cell::RefCell, env, error::Error, fmt::Write, fs, path::Path, rc::Rc};

    use bindgen::callbacks::{
        DeriveTrait, EnumVariantCustomBehavior, EnumVariantValue, ImplementsTrait, ParseCallbacks,
    };
    use bindgen::{Builder, EnumVariation, Formatter, RustEdition, RustTarget};

    /// Enums whose values are or-ed together, or stored in a plain integer field: integers on the
    /// Rust side too.
    const PLAIN_INTEGERS: &str = ".*_flags|CUhostTaskSyncMode|CUgraphDependencyType|\
         CUatomicOperationCapability|CUCoredumpGenerationFlags";

    /// Notes the names of the result codes: bindgen gives them as constants, which a program cannot
    /// list.
    #[derive(Clone, Debug, Default)]
    struct ResultCodes(Rc<RefCell<Vec<String>>>);

    /// The documentation of `CUresult`.
    const RESULT_PAGE: &str = r#"
/// The result of a driver call, with a constant for each code that CUDA 13.5 has.
///
/// The guide [`errors`](crate::guide::errors#codes-of-the-driver) explains the codes of events and
/// streams, and NVIDIA's page [all of them][page]. [`Error::is_sticky`](crate::Error::is_sticky)
/// tells after which of them CUDA no longer works in this process.
///
/// ```
/// use cuda_events::sys::CUresult;
///
/// let code = CUresult(719);
/// assert_eq!(code, CUresult::CUDA_ERROR_LAUNCH_FAILED);
/// assert_eq!(code.to_string(), "CUDA_ERROR_LAUNCH_FAILED (719)");
/// assert_eq!(CUresult(4242).name(), None); // a code of a newer driver
/// ```
///
/// [page]: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html
"#;

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
                "/// Each result code that CUDA 13.5 has, with its name, in the order of \
                    `wrapper.h`.\n\
                 pub const RESULT_CODES: &[(CUresult, &::core::ffi::CStr)] = &[\n",
            );
            for name in names.iter() {
                writeln!(text, "    (CUresult::{name}, c\"{name}\"),")?;
            }
            text.push_str("];\n");
            Ok(text)
        }
    }

    /// What both files of bindings have in common.
    fn builder() -> Result<Builder, Box<dyn Error>> {
        Ok(Builder::default()
            .header("wrapper.h")
            // One fixed target, so that every host generates the same file. What the headers declare
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
            .derive_copy(true)
            .derive_default(true)
            .derive_eq(true)
            .derive_hash(true)
            // The header comment of bindgen names its version; the file should change only when the
            // bindings do.
            .disable_header_comment())
    }

    /// The layout assertions hold for 64-bit targets, the only ones that have a driver. Elsewhere
    /// the crate must still compile, to say that there is none.
    fn on_64_bits(bindings: &bindgen::Bindings) -> String {
        let assertion = "const _: () = {";
        bindings
            .to_string()
            .replace(assertion, &format!("#[cfg(target_pointer_width = \"64\")]\n{assertion}"))
    }

    fn write(file: &str, text: &str) -> Result<(), Box<dyn Error>> {
        let out = env::var_os("OUT_DIR").ok_or("cargo has not set OUT_DIR")?;
        Ok(fs::write(Path::new(&out).join(file), text)?)
    }

    /// The types of `wrapper.h` can be copied, compared and shown.
    #[derive(Debug)]
    struct AsInBindings;

    impl ParseCallbacks for AsInBindings {
        fn blocklisted_type_implements_trait(
            &self,
            _: &str,
            _: DeriveTrait,
        ) -> Option<ImplementsTrait> {
            Some(ImplementsTrait::Yes)
        }
    }

    /// What `wrapper-more.h` has itself, beside all of `wrapper.h`: what is bound one day keeps its
    /// path. None of its structures is `non_exhaustive`, as the crates that use it make them.
    pub(super) fn more() -> Result<(), Box<dyn Error>> {
        let generated = builder()?
            .header("wrapper-more.h")
            .allowlist_file("wrapper-more.h")
            .allowlist_recursively(false)
            .parse_callbacks(Box::new(AsInBindings))
            .raw_line("// Generated from wrapper-more.h by `tools/bindings --write`. Do not edit.")
            .raw_line("pub use crate::sys::*;")
            .generate()?;
        write("more_bindings.rs", &on_64_bits(&generated))
    }

    pub(super) fn bindings() -> Result<(), Box<dyn Error>> {
        let codes = ResultCodes::default();
        let generated = builder()?
            // Its Debug has the code's name: src/sys/result.rs.
            .no_debug("CUresult")
            // It has a function pointer, and the address of a function is not its identity.
            .no_partialeq("CUDA_HOST_NODE_PARAMS")
            .parse_callbacks(Box::new(codes.clone()))
            .raw_line("// Generated from wrapper.h by `tools/bindings --write`. Do not edit.")
            .generate()?;

        let mut text = on_64_bits(&generated);
        let result = "#[repr(transparent)]\n\
            #[derive(Copy, Clone, Hash, PartialEq, Eq)]\npub struct CUresult(";
        if !text.contains(result) {
            return Err("the bindings have no CUresult".into());
        }
        text = text.replace(result, &format!("{}{result}", RESULT_PAGE.trim_start()));
        text.push_str(&codes.constant()?);
        for name in ["CU_STREAM_LEGACY", "CU_STREAM_PER_THREAD"] {
            text = with_handle_type(&text, name)?;
        }

        let mut text = growable(&with_names(&text)?)?;
        text.push_str(&parameters(&fs::read_to_string("wrapper.h")?)?);

        write("bindings.rs", &text)
    }

    /// Gives a constant the type of a stream's handle. C has no constants of addresses.
    fn with_handle_type(text: &str, name: &str) -> Result<String, Box<dyn Error>> {
        let begin = format!("pub const {name}: usize = ");
        let (before, rest) = text.split_once(&begin).ok_or("wrapper.h lacks a stream's handle")?;
        let (number, after) = rest.split_once(';').ok_or("a constant does not end")?;
        let typed = format!("pub const {name}: CUstream = ::core::ptr::without_provenance_mut");
        Ok(format!("{before}{typed}({number});{after}"))
    }

    /// Makes each structure that CUDA may fill up `non_exhaustive`: those with reserved bytes, and
    /// the members of a resource of a device, which are padded there. `tools/abi_proof.py` lists the
    /// ones that have grown. An interprocess handle consists of such bytes, and callers make it of
    /// them.
    fn growable(text: &str) -> Result<String, Box<dyn Error>> {
        let mut grown = String::new();
        for (at, part) in text.split("\npub struct ").enumerate() {
            if at > 0 {
                let body = part.split_once("\n}").map_or("", |(body, _)| body);
                let name = part.split([' ', '(']).next().ok_or("a structure has no name")?;
                let reserved = ["reserved", "pad", "_internal_padding"]
                    .iter()
                    .any(|field| body.contains(&format!("\n    pub {field}")));
                let resource = name.starts_with("CUdev") && name.ends_with("Resource");
                let handle = name.starts_with("CUipc");
                if (reserved || resource) && !handle {
                    grown.push_str("\n#[non_exhaustive]");
                }
                grown.push_str("\npub struct ");
            }
            grown.push_str(part);
        }
        if !grown.contains("#[non_exhaustive]\npub struct CUdevSmResource {") {
            return Err("the structures that grow were not found".into());
        }
        Ok(grown)
    }

    /// The macro `parameters!`, which gives the parameters of an entry point's type as they are in
    /// C, and their names alone: the documentation shows both.
    fn parameters(header: &str) -> Result<String, Box<dyn Error>> {
        let mut text = String::from("macro_rules! parameters {\n");
        for typedef in header.split("typedef CUresult (*PFN_").skip(1) {
            let (name, rest) = typedef.split_once(")(").ok_or("a typedef without parameters")?;
            let (list, _) = rest.split_once(");").ok_or("a typedef does not end")?;
            let list = list.split_whitespace().collect::<Vec<_>>().join(" ");
            let names: Vec<_> = list
                .split(", ")
                .filter(|parameter| *parameter != "void")
                .filter_map(|parameter| parameter.rsplit([' ', '*']).next())
                .collect();
            let names = names.join(", ");
            writeln!(text, "    (PFN_{name}) => {{ \"{list}\" }};")?;
            writeln!(text, "    (PFN_{name} names) => {{ \"{names}\" }};")?;
        }
        text.push_str("}\npub(crate) use parameters;\n");
        Ok(text)
    }

    /// Gives each open newtype a Debug with the names of its values, in the place of the derived
    /// one.
    fn with_names(text: &str) -> Result<String, Box<dyn Error>> {
        let mut named = text.to_owned();
        for part in text.split("\nimpl ").skip(1) {
            let Some((name, rest)) = part.split_once(" {\n    pub const ") else { continue };
            let derived = format!(
                "#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]\npub struct {name}(pub "
            );
            // CUresult has its own.
            if !text.contains(&derived) {
                continue;
            }
            named = named.replace(&derived, &derived.replace("Debug, ", ""));
            let (constants, _) = rest.split_once("\n}").ok_or("an impl does not end")?;
            write!(
                named,
                "impl ::core::fmt::Debug for {name} {{\n    \
                 fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result \
                 {{\n        let name = match *self {{\n"
            )?;
            let mut values = Vec::new();
            for constant in constants.split("pub const ") {
                let value = constant.rsplit_once('(').and_then(|(_, value)| value.split_once(')'));
                let (Some((constant, _)), Some((value, _))) = (constant.split_once(':'), value)
                else {
                    return Err(format!("a constant of {name} is none: {constant}").into());
                };
                // Of two names for one value the first.
                let value = value.trim().trim_end_matches(',').to_owned();
                if !values.contains(&value) {
                    writeln!(named, "            Self::{constant} => \"{constant}\",")?;
                    values.push(value);
                }
            }
            write!(
                named,
                "            _ => \"{name}\",\n        }};\n        write!(f, \"{{name}} ({{}})\", \
                    self.0)\n    }}\n}}\n"
            )?;
        }
        Ok(named)
    }
}
