#pragma once

namespace lockstep::cuda {

/// Makes `nvrtc()` a compiler for the emulated GPU: the C++ compiler of this build, which makes a
/// library of a text. The fake driver loads its bytes as a module.
void install_fake_nvrtc();

}  // namespace lockstep::cuda
