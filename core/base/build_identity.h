#pragma once

namespace lockstep {

/// Identifies this build of the library: a hash of its sources, the compiler and what was built in,
/// in hexadecimal. Defined in a file that the build makes (cmake/BuildIdentity.cmake).
const char* build_identity() noexcept;

}  // namespace lockstep
