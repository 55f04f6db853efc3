#pragma once

// Does not include cublasLt.h, whose vector types conflict with tests/emulation/vector_types.h.

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::cuda {

class CublasLtLibrary;

/// Records calls of the fake library and configures its answers. There is one instance, for use by
/// one thread at a time.
struct FakeCublasLtBooks {
  int advised = 0;                  ///< number of heuristic queries
  int products = 0;                 ///< number of queued products
  uint32_t reduction_schemes = 0;   ///< allowed in the last query
  uint32_t epilogue = 0;            ///< of the last product, as cublasLtEpilogue_t has it
  double beta = 0;                  ///< of the last product
  int32_t processors = 0;           ///< that the last product was for; 0: all
  std::vector<std::string> misuse;  ///< refused calls, with the reason

  bool knows_bias = true;      ///< false: no algorithm with a bias
  bool knows_gelu = true;      ///< false: no algorithm with a gelu or its slope
  bool knows_anything = true;  ///< false: no algorithm at all
  /// false: a launch with a bias and another addend is not supported, though an algorithm was given
  bool takes_bias_beside_c = true;
  bool can_create = true;  ///< false: handles are refused, as by an old driver
};
FakeCublasLtBooks& fake_cublas_lt_books();

/// Makes `cublas_lt()` a cuBLASLt of plain CPU loops, for devices whose memory the CPU can access
/// and whose driver runs host functions in stream order. It refuses descriptors, addresses and
/// workspaces that the real library would refuse or misread, and algorithms made for another
/// problem.
void install_fake_cublas_lt();

/// Replaces `cublas_lt()` while alive.
class CublasLtScope {
 public:
  enum class Library {
    kPresent,  ///< the fake one on the emulated GPU, its own on a real one
    kMissing
  };

  /// A fake library starts with cleared records and without a handle.
  explicit CublasLtScope(Library library);
  ~CublasLtScope();
  CublasLtScope(const CublasLtScope&) = delete;
  CublasLtScope& operator=(const CublasLtScope&) = delete;

  /// Whether `fake_cublas_lt_books` records the calls.
  bool is_fake() const { return is_fake_; }

 private:
  CublasLtLibrary& before_;
  bool is_fake_ = false;
};

}  // namespace lockstep::cuda
