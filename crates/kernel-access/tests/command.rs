//! The command on files of each kind.

mod common;

use std::process::{Command, Output};

use common::{PLAIN, ZSTD, cubin, fatbin};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kernel-access")).args(arguments).output().expect("it runs")
}

#[test]
fn the_command_prints_kernels_and_their_parameters() {
    let image =
        cubin(0x0600_5a04, 8, &[("k", &[0; 32], &[(0, 8), (8, 4)]), ("other", &[0; 16], &[])]);
    let text = "sm_90 k: 32 bytes of code\n  parameter 0: 8 bytes at 0\n  parameter 1: 4 bytes at 8\n  which parameters it reads is not known: the instruction at 0x0 is not known\n";
    let ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.entry t(.param .u64 to)\n{ .reg .b64 a; ld.param.u64 a, [to]; st.u8 [a], 1; ret; }\n";
    let all = fatbin(&[(2, 90, ZSTD, 64, &image), (1, 90, PLAIN, 64, ptx.as_bytes())]);
    let mut library = b"\x7fELF, of a host".to_vec();
    library.resize(64, 1);
    library.extend(&all);
    let mut damaged = all.clone();
    damaged[16 + 56] ^= 1;
    let folder = std::env::temp_dir().join(format!("kernel-access-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("image");
    let file_name = file.to_str().expect("a plain path");
    let whole = format!(
        "{text}sm_90 other: 16 bytes of code\n  which parameters it reads is not known: the instruction at 0x0 is not known\n"
    );
    let with_code = format!("{text}  0000 @P0 ?\n  0010 @P0 ?\n");
    let with_ptx = format!(
        "{whole}PTX, {} bytes\nPTX for sm_80 t\n  parameter 0: 8 bytes at 0\n  word at 0: written\n",
        ptx.len()
    );
    let of_ptx = "PTX for sm_80 t\n  parameter 0: 8 bytes at 0\n  word at 0: written\n  0000 5: LDC.8 R0, c[0x0][0x160]\n  0010 5: STORE.GENERIC.1 [R0], 0x1\n  0020 5: EXIT\n  0030 5: EXIT\n";
    let cases: [(&[u8], &[&str], i32, &str); 10] = [
        (&image, &[], 0, &whole),
        (&all, &[], 0, &with_ptx),
        (&library, &[], 0, &with_ptx),
        (&library, &["k"], 0, text),
        (&library, &["k", "--code"], 0, &with_code),
        (&library, &["none"], 3, ""),
        (&library, &["t", "--code"], 0, of_ptx),
        (b".version 8.0\n.target sm_80\n", &[], 1, "PTX, 27 bytes\n"),
        (&damaged, &[], 1, ""),
        (b"int main() {}", &[], 1, ""),
    ];
    for (bytes, arguments, code, printed) in cases {
        std::fs::write(&file, bytes).expect("a file");
        let output = run(&[&[file_name], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), printed);
        assert_eq!(output.stderr.is_empty(), code == 0, "{output:?}");
    }
    std::fs::remove_dir_all(&folder).expect("it is removed");
    // A device without an end.
    let output = run(&["/dev/zero"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && errors.contains("no end"), "{errors}");
    for asked in ["--help", "--version"] {
        assert_eq!(run(&[asked]).status.code(), Some(0));
    }
    for wrong in [&[][..], &["--nothing"], &["a", "b", "c"]] {
        assert_eq!(run(wrong).status.code(), Some(2));
    }
    assert_eq!(run(&["/nowhere/image"]).status.code(), Some(1));
}

/// A number is cut to the parameter's bytes where only copies of its sign are lost.
#[test]
fn arguments_fit_their_parameters() {
    let folder = std::env::temp_dir().join(format!("kernel-access-fit-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("text");
    let file = file.to_str().expect("a plain path");
    for (kind, bits) in [("u8", 8), ("u16", 16), ("u32", 32), ("u64", 64)] {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 to, \
             .param .{kind} by)\n{{ .reg .b64 a; ld.param.u64 a, [to]; st.u8 [a], 1; ret; }}\n"
        );
        std::fs::write(file, text).expect("a file");
        let end = 1_i128 << bits;
        let digits = |count: usize| format!("bytes:{}", "7f".repeat(count));
        let cases = [
            ("0".to_owned(), true),
            (format!("{}", end - 1), true),
            (format!("{:#x}", end - 1), true),
            (format!("{}", -end / 2), true),
            ("-1".to_owned(), true),
            (format!("{end}"), false),
            (format!("{end:#x}"), false),
            (format!("{}", 2 * end - 1), false),
            (format!("{}", -end / 2 - 1), false),
            (format!("{}", -end), false),
            (digits(bits / 8), true),
            (digits(bits / 8 - 1), false),
            (digits(bits / 8 + 1), false),
        ];
        for (argument, fits) in cases {
            let output = run(&[file, "k", "--launch", "1", "1", "0x7f1a", &argument]);
            let text = String::from_utf8(output.stdout).expect("text");
            assert_eq!(text.contains("Write 0x7f1a..0x7f1b"), fits, "{kind} {argument}: {text}");
            assert_eq!(text.contains("the arguments do not fit"), !fits, "{kind} {argument}");
        }
        // One more than the kernel has.
        let output = run(&[file, "k", "--launch", "1", "1", "0x7f1a", "0", "0"]);
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(text.contains("the arguments do not fit"), "{text}");
    }
    std::fs::remove_dir_all(&folder).expect("it is removed");
}

/// A kernel that adds an array to another, launched as its source means it, and in wrong ways.
#[test]
fn the_command_prints_what_a_launch_touches() {
    let line = include_str!("shapes.txt").lines().find(|line| line.starts_with("90 axpy 210 "));
    let text = line.and_then(|line| line.split(' ').nth(4)).expect("the code");
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("a byte");
    let code: Vec<u8> = (0..text.len()).step_by(2).map(byte).collect();
    let image = cubin(0x0600_5a04, 8, &[("axpy", &code, &[(0, 8), (8, 8), (16, 4), (20, 4)])]);
    let folder = std::env::temp_dir().join(format!("kernel-access-launch-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("image");
    std::fs::write(&file, image).expect("a file");
    let file = file.to_str().expect("a plain path");
    let launched = |arguments: &[&str]| {
        let output = run(&[&[file, "axpy", "--launch"], arguments].concat());
        (output.status.code(), String::from_utf8(output.stdout).expect("text"))
    };
    let (code, text) = launched(&["3", "64,1", "0x7f1200000000", "0x7f1300000000", "0", "150"]);
    assert_eq!(code, Some(0));
    for line in [
        "  word at 0: read\n  word at 8: read, written\n",
        "Read 0x7f1200000000..0x7f1200000258, 600 bytes\n",
        "Read 0x7f1300000000..0x7f1300000258, 600 bytes\n",
        "Write 0x7f1300000000..0x7f1300000258, 600 bytes\n",
        "  surely: 0110 Write 0x7f13000000fc, 4 bytes\n",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    // A number of which only its sign is cut off, so that no thread goes on; all bytes of a parameter, and none of the last.
    let (_, negative) = launched(&["3", "64", "bytes:000000001a7f0000", "0", "0", "-2"]);
    assert!(!negative.contains("surely") && !negative.contains("may be"), "{negative}");
    let (_, unknown) = launched(&["3", "64", "bytes:000000001a7f0000", "0", "0"]);
    assert!(unknown.contains("Read 0x7f1a00000000..0x7f1a00000300"), "{unknown}");
    assert!(!unknown.contains("surely"), "{unknown}");
    for wide in [&["3", "64", "0", "0", "0", "0x100000000"][..], &["3", "64", "bytes:00"]] {
        assert!(launched(wide).1.contains("the arguments do not fit"), "{wide:?}");
    }
    // Two rows of three columns in each plane of a cube.
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/order.ptx");
    let cube = ["3,2,3", "5,4", "0x7f1200000000", "0", "3", "0", "2", "12", "7"];
    let output = run(&[&[file, "part_of_cube", "--launch"], &cube[..]].concat());
    let text = String::from_utf8(output.stdout).expect("text");
    let rows = "Write 0x7f1200000000..0x7f12000002dc, 732 bytes, 60 of each 336, 12 of each 48\n";
    assert!(text.contains(rows), "{text}");
    for wrong in
        [&[][..], &["3"], &["3", "1,2,3,4"], &["x", "1"], &["1", "1", "y"], &["1", "1", "bytes:0"]]
    {
        assert_eq!(launched(wrong).0, Some(2), "{wrong:?}");
    }
    std::fs::remove_dir_all(&folder).expect("it is removed");
}
