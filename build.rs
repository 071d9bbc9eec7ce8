//! Picks the raw bindings. By default nothing happens here: `src/sys/bindings.rs` is committed, and
//! so is `src/sys/more_bindings.rs`. With the feature `bindgen` they are generated afresh from
//! `wrapper.h` and `wrapper-more.h` into `OUT_DIR`.

/// Each header, and the bindings that are made from it.
const HEADERS: [[&str; 2]; 2] =
    [["wrapper.h", "src/sys/bindings.rs"], ["wrapper-more.h", "src/sys/more_bindings.rs"]];

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

/// Says that the bindings are older than the header, where the compiler would only miss a name. A
/// package has no tools and looks at nothing.
#[cfg(not(feature = "bindgen"))]
fn in_a_checkout([header, bindings]: [&str; 2]) {
    use std::{fs::read_to_string, path::Path};

    if !Path::new("tools/bindings").exists() {
        return;
    }
    println!("cargo::rerun-if-changed={bindings}");
    let (Ok(declarations), Ok(generated)) = (read_to_string(header), read_to_string(bindings))
    else {
        return;
    };
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter(|word| word.starts_with("PFN_cu")).map(str::to_owned).collect()
    };
    let generated = words(&generated);
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
        let mut text = on_64_bits(&generated);
        text.push_str(
            "macro_rules! for_each_other_function {\n    ($callback:ident) => { $callback! {\n",
        );
        for EntryPoint { name, typedef, twin, .. } in
            &entry_points(&fs::read_to_string("wrapper-more.h")?)?
        {
            writeln!(text, "        {name} {typedef}{twin};")?;
        }
        text.push_str("    } };\n}\npub(crate) use for_each_other_function;\n");
        write("more_bindings.rs", &text)
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
        let header = fs::read_to_string("wrapper.h")?;
        text.push_str(&parameters(&header)?);
        text.push_str(&list(&entry_points(&header)?)?);

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

    /// An entry point as a header declares it.
    struct EntryPoint<'a> {
        page: &'a str,
        need: &'a str,
        /// The exported name, and the one without a version.
        name: &'a str,
        base: &'a str,
        typedef: String,
        /// The typedef of the twin after a blank, or nothing.
        twin: String,
        creates: bool,
    }

    /// The entry points of a header. The comments before them are explained there.
    fn entry_points(header: &str) -> Result<Vec<EntryPoint<'_>>, Box<dyn Error>> {
        // The description of a green context is not an object: no call ends it.
        let handles: Vec<_> = header
            .lines()
            .filter_map(|line| line.strip_prefix("typedef struct ")?.strip_suffix(';'))
            .filter_map(|rest| Some(rest.split_once("_st *")?.1))
            .filter(|handle| *handle != "CUdevResourceDesc")
            .collect();
        let (mut found, mut page, mut words) = (Vec::<EntryPoint<'_>>::new(), "", Vec::new());
        for part in header.split("\ntypedef ") {
            let pointer = part.strip_prefix("CUresult (*PFN_").and_then(|rest| {
                let (name, rest) = rest.split_once(")(")?;
                Some((name, rest.split_once(");")?.0))
            });
            // That of a twin may be the type of its function.
            let same = part.strip_prefix("PFN_").and_then(|rest| {
                let (_, twin) = rest.split_once(';')?.0.split_once("PFN_")?;
                Some((twin, ""))
            });
            if let Some((typedef, parameters)) = pointer.or(same) {
                let (base, version) =
                    typedef.rsplit_once("_v").ok_or("a typedef has no version")?;
                let (mut need, mut name) = ("optional", base);
                for &word in &words {
                    match word {
                        "required" => need = word,
                        word if word.starts_with(base) => name = word,
                        word => return Err(format!("what is {word} before {typedef}?").into()),
                    }
                }
                let creates = parameters.split(',').any(|parameter| {
                    let place = parameter.trim_start().split_once(" *");
                    place.is_some_and(|(handle, _)| handles.contains(&handle))
                });
                let looks_up = ["Get", "Pop", "Update"].iter().any(|part| base.contains(part));
                let typedef = format!("PFN_{typedef}");
                if version.contains("_pt") {
                    let function = found.last_mut().filter(|function| function.base == base);
                    function.ok_or("a twin does not follow its function")?.twin =
                        format!(" {typedef}");
                } else if found.iter().any(|other| other.name == name) {
                    let text = format!("{name} twice: write `/* {name}_v2 */` before {typedef}");
                    return Err(text.into());
                } else {
                    let (twin, creates) = (String::new(), creates && !looks_up);
                    found.push(EntryPoint { page, need, name, base, typedef, twin, creates });
                }
            }
            for line in part.lines() {
                match line.strip_prefix("/* ").map(|text| text.trim_end_matches(" */")) {
                    Some(text) if text.starts_with("----") => {}
                    Some(text) => match text.strip_prefix("page ") {
                        Some(name) => page = name,
                        None => words.extend(text.split(' ')),
                    },
                    None => words.clear(),
                }
            }
        }
        Ok(found)
    }

    /// The macro that calls another one with the list of entry points.
    fn list(entries: &[EntryPoint<'_>]) -> Result<String, Box<dyn Error>> {
        let mut text = String::from(
            "/// Calls `$callback!` with the list, for code that needs a line for each entry point: the\n\
             /// table in `symbols.rs` and the tests. The grammar of the list is no promise, and what is\n\
             /// published expands it nowhere else: the tests have the feature that exports the macro.\n\
             #[cfg_attr(feature = \"__entry_points\", macro_export)]\n\
             #[doc(hidden)]\n\
             macro_rules! for_each_entry_point {\n    ($callback:ident) => { $callback! {\n",
        );
        for (at, entry) in entries.iter().enumerate() {
            let EntryPoint { page, need, name, base, typedef, twin, creates } = entry;
            let before = at.checked_sub(1).map(|at| entries[at].page);
            if before != Some(page) {
                let end = if before.is_some() { "        }\n" } else { "" };
                writeln!(text, "{end}        {page} {{")?;
            }
            // NVIDIA's pages have no version in a name, unless the one without is bound too.
            let plain = entries.iter().any(|other| other.name == *base)
                || entries[..at].iter().any(|other| other.base == *base);
            let page_name = if plain { String::new() } else { format!(" ({base})") };
            let creates = if *creates { ", creates" } else { "" };
            writeln!(text, "            {need} {name}{page_name} {typedef}{twin}{creates};")?;
        }
        text.push_str("        }\n    } };\n}\npub(crate) use for_each_entry_point;\n");
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
