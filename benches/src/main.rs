mod loops; mod rig; mod rounds;
fn main() {
    let driver = cuda_events::Driver::load().unwrap();
    println!("{driver:?}");
    let peer = cudarc::driver::CudaContext::new(0).unwrap();
    let context = rig::first_context(driver);
    let d = cuda_events::IpcEventDescriptor::from_raw([1;64], false);
    let rig = rig::Rig::new(&context, &peer, d);
    rounds::measure(&rig, 100, |v| println!("{v}"));
}
