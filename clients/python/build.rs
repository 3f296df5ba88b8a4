//! Tells the linker of macOS that an extension module finds the interpreter's symbols when it is loaded.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
