//! Kernels by their text.

use cuda_kernel_access::code::{Code, NoCode};
use cuda_kernel_access::ptx::Module;

pub(crate) const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// A kernel of the name `k`.
pub(crate) fn code(text: &str) -> Result<Code, NoCode> {
    let text = format!("{HEAD}{text}");
    let module = Module::parse(&text).map_err(NoCode::Ptx)?;
    Code::from_ptx(&module, "k")
}
