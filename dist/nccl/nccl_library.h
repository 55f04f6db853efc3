#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "dist/nccl/nccl_abi.h"

namespace lockstep::dist {

/// NCCL loaded with dlopen. Programs are not linked with it, so that they start on machines without
/// it.
struct NcclLibrary {
  /// Oldest supported version: it has all functions except the optional ones.
  static constexpr int kOldest = nccl::version_code(2, 19, 0);

  nccl::Functions functions;
  int version = 0;   ///< an nccl::version_code
  std::string file;  ///< path of the library

  /// ncclCommShrink came with 2.27.
  bool can_shrink() const noexcept { return functions.ncclCommShrink != nullptr; }
  /// ncclCommInitRankScalable came with 2.23.
  bool can_scale() const noexcept { return functions.ncclCommInitRankScalable != nullptr; }
  /// ncclMemAlloc came with 2.19, windows of symmetric memory with 2.27.
  bool can_allocate() const noexcept {
    return functions.ncclMemAlloc != nullptr && functions.ncclMemFree != nullptr;
  }
  bool has_windows() const noexcept {
    return functions.ncclCommWindowRegister != nullptr &&
           functions.ncclCommWindowDeregister != nullptr;
  }
};

/// Loads the library for the life of the process. Throws BackendError, naming the file and its
/// version if known, if the file is not found, is too old or lacks a function.
std::shared_ptr<const NcclLibrary> load_nccl(const std::string& file = "libnccl.so.2");
/// Second half of load_nccl: checks the version and looks up the functions. `find` returns a
/// function's address by name, or null.
std::shared_ptr<const NcclLibrary> read_nccl(const std::string& file,
                                             const std::function<void*(const char* name)>& find);

/// Returns for example "2.28.9".
std::string nccl_version_text(int version);

/// Returns the exception for a failed NCCL call, with NCCL's message: PeerLostError if it failed
/// because of another rank, else BackendError. `comm` may be null.
std::exception_ptr nccl_error(const NcclLibrary& library, nccl::Result result, const char* function,
                              nccl::Comm* comm);

}  // namespace lockstep::dist
