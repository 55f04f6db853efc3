#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "dist/nccl/nccl_abi.h"

namespace lockstep::dist {

/// A copy of NCCL in this process. Nothing is linked with it: it is opened when first wanted, so
/// that programs start on machines without it.
struct NcclLibrary {
  /// The oldest that has all functions but those that are optional.
  static constexpr int kOldest = nccl::version_code(2, 19, 0);

  nccl::Functions functions;
  int version = 0;   ///< as nccl::version_code
  std::string file;  ///< where it was found

  /// ncclCommShrink came with 2.27.
  bool can_shrink() const noexcept { return functions.ncclCommShrink != nullptr; }
};

/// Opens a library for as long as the process lives. Throws BackendError, which names the file and,
/// where it has one, the version: there is no such file, it is too old, or it lacks a function.
std::shared_ptr<const NcclLibrary> load_nccl(const std::string& file = "libnccl.so.2");
/// The second half of it. `find` gives a function's address by name, or null.
std::shared_ptr<const NcclLibrary> read_nccl(const std::string& file,
                                             const std::function<void*(const char* name)>& find);

/// "2.28.9".
std::string nccl_version_text(int version);

/// What a call of NCCL failed with: PeerLostError where another rank's end is the reason, else
/// BackendError, in NCCL's words. `comm` may be null.
std::exception_ptr nccl_error(const NcclLibrary& library, nccl::Result result, const char* function,
                              nccl::Comm* comm);

}  // namespace lockstep::dist
