#include "tests/emulation/fake_cublas_lt.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/cuda/availability.h"
#include "core/cuda/cublas_lt.h"
#include "core/cuda/runtime.h"
#include "core/tensor/dtype.h"
#include "tests/emulation/fake_cublas_lt_problem.h"
#include "tests/emulation/queued_work.h"

namespace lockstep::cuda {

namespace {

using fake_lt::Algorithm;
using fake_lt::kAlgorithm;
using fake_lt::kPreference;
using fake_lt::Layout;
using fake_lt::Operation;
using fake_lt::Preference;
using fake_lt::Problem;
using fake_lt::problem_of;
using fake_lt::read;

cublasStatus_t refuse(const std::string& why) {
  fake_cublas_lt_books().misuse.push_back(why);
  return CUBLAS_STATUS_INVALID_VALUE;
}

/// Creates a descriptor in the caller's memory.
template <class T, class Opaque>
cublasStatus_t begin(const char* function, Opaque* to, size_t bytes, const T& descriptor) {
  if (bytes != sizeof(*to)) return refuse(std::string(function) + ": another size");
  std::memcpy(to, &descriptor, sizeof(descriptor));
  return CUBLAS_STATUS_SUCCESS;
}

/// The bytes of the member that holds an attribute.
using Slot = std::span<std::byte>;
using Attributes = std::vector<std::pair<int, Slot>>;
template <class M>
Slot slot_of(M& member) {
  return std::as_writable_bytes(std::span(&member, 1));
}
Attributes attributes(Operation& operation) {
  return {{CUBLASLT_MATMUL_DESC_TRANSA, slot_of(operation.transpose_a)},
          {CUBLASLT_MATMUL_DESC_TRANSB, slot_of(operation.transpose_b)},
          {CUBLASLT_MATMUL_DESC_EPILOGUE, slot_of(operation.epilogue)},
          {CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, slot_of(operation.processors)},
          {CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, slot_of(operation.bias_type)},
          {CUBLASLT_MATMUL_DESC_BIAS_POINTER, slot_of(operation.bias)},
          {CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, slot_of(operation.bias_stride)},
          {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, slot_of(operation.aux)},
          {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, slot_of(operation.aux_ld)}};
}
Attributes attributes(Layout& layout) {
  return {{CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, slot_of(layout.batch)},
          {CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, slot_of(layout.stride)}};
}
Attributes attributes(Preference& preference) {
  return {{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, slot_of(preference.workspace)},
          {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, slot_of(preference.reductions)},
          {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, slot_of(preference.alignments[0])},
          {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, slot_of(preference.alignments[1])},
          {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, slot_of(preference.alignments[2])},
          {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, slot_of(preference.alignments[3])}};
}

/// Sets an attribute of the descriptor T in the caller's memory. The value must have the member's
/// size.
template <class T, class Opaque>
cublasStatus_t set(const char* function, Opaque* to, int which, const void* value, size_t bytes) {
  auto descriptor = read<T>(to);
  if (descriptor.kind != T().kind) return refuse(std::string(function) + ": not initialised");
  for (const auto& [attribute, slot] : attributes(descriptor)) {
    if (attribute != which || value == nullptr || bytes != slot.size()) continue;
    std::memcpy(slot.data(), value, bytes);
    std::memcpy(to, &descriptor, sizeof(descriptor));
    return CUBLAS_STATUS_SUCCESS;
  }
  return refuse(std::string(function) + " " + std::to_string(which));
}

uint32_t alignment_of(const void* address) {
  const auto bits = std::bit_cast<uintptr_t>(address) | 256;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

/// For gelu(x) = 0.5 x (1 + tanh(u)): tanh(u) and the derivative of u.
struct GeluTerm {
  explicit GeluTerm(double x) {
    constexpr double kFactor = 0.79788456080286536;  // sqrt(2 / pi)
    tanh = std::tanh(kFactor * (x + 0.044715 * x * x * x));
    slope = kFactor * (1 + 3 * 0.044715 * x * x);
  }
  double tanh;
  double slope;
};
double gelu(double x) { return 0.5 * x * (1 + GeluTerm(x).tanh); }
double gelu_slope(double x) {
  const GeluTerm term(x);
  return 0.5 * (1 + term.tanh) + 0.5 * x * (1 - term.tanh * term.tanh) * term.slope;
}

/// A product queued on a stream.
struct Queued {
  Problem problem;
  double alpha = 0;
  double beta = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  void* d = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;

  /// Computes factors of type T, a result R, and sums in S.
  template <class T, class R, class S>
  void run_as() const {
    const Problem& p = problem;
    const bool ta = p.operation.transpose_a == CUBLAS_OP_T;
    const bool tb = p.operation.transpose_b == CUBLAS_OP_T;
    const auto depth = static_cast<int64_t>(ta ? p.a.rows : p.a.columns);
    const auto rows = static_cast<int64_t>(p.d.rows);
    const auto columns = static_cast<int64_t>(p.d.columns);
    const int64_t a_row = ta ? p.a.ld : 1;
    const int64_t a_column = ta ? 1 : p.a.ld;
    const int64_t b_row = tb ? p.b.ld : 1;
    const int64_t b_column = tb ? 1 : p.b.ld;
    for (int32_t batch = 0; batch < p.d.batch; ++batch) {
      const T* const left = static_cast<const T*>(a) + batch * p.a.stride;
      const T* const right = static_cast<const T*>(b) + batch * p.b.stride;
      const R* const added = static_cast<const R*>(c) + batch * p.c.stride;
      const R* const bias =
          static_cast<const R*>(p.operation.bias) + batch * p.operation.bias_stride;
      R* const aux = static_cast<R*>(p.operation.aux);
      R* const result = static_cast<R*>(d) + batch * p.d.stride;
      for (int64_t j = 0; j < columns; ++j) {
        for (int64_t i = 0; i < rows; ++i) {
          S sum = 0;
          for (int64_t k = 0; k < depth; ++k) {
            sum += static_cast<S>(left[i * a_row + k * a_column]) *
                   static_cast<S>(right[k * b_row + j * b_column]);
          }
          S value = static_cast<S>(alpha) * sum;
          if (beta != 0) value += static_cast<S>(beta) * static_cast<S>(added[i + j * p.c.ld]);
          if (p.has_bias()) value += static_cast<S>(bias[i]);
          if (p.has_gelu()) {
            aux[i + j * p.operation.aux_ld] = static_cast<R>(value);
            value = static_cast<S>(gelu(value));
          } else if (p.has_gelu_backward()) {
            value *= static_cast<S>(
                gelu_slope(static_cast<double>(static_cast<S>(aux[i + j * p.operation.aux_ld]))));
          }
          result[i + j * p.d.ld] = static_cast<R>(value);
        }
      }
    }
  }

  void run() const {
    // Scribbles over the workspace, which belongs to the library during the call.
    if (workspace_bytes > 0) std::memset(workspace, 0xa5, workspace_bytes);
    const bool widens = problem.a.type != problem.d.type;
    switch (problem.a.type) {
      case CUDA_R_64F:
        return run_as<double, double, double>();
      case CUDA_R_32F:
        return run_as<float, float, float>();
      case CUDA_R_16F:
        return widens ? run_as<Half, float, float>() : run_as<Half, Half, float>();
      default:
        return widens ? run_as<BFloat16, float, float>() : run_as<BFloat16, BFloat16, float>();
    }
  }
};

void CUDA_CB run_queued(void* queued) {
  const std::unique_ptr<Queued> owned(static_cast<Queued*>(queued));
  owned->run();
}

/// Of a graph, which may be replayed as long as the process runs.
void CUDA_CB run_captured(void* queued) { static_cast<Queued*>(queued)->run(); }
void keep_captured(std::unique_ptr<Queued> queued) {
  static Mutex mutex;
  static auto& kept = *new std::vector<std::unique_ptr<Queued>>;
  const MutexLock lock(mutex);
  kept.push_back(std::move(queued));
}

const Driver& driver() { return runtime_of({DeviceType::kCUDA, 0}).context(0).driver(); }

bool is_handle(cublasLtHandle_t handle) {
  return std::bit_cast<void*>(handle) == &fake_cublas_lt_books();
}

/// Implementations of the library's functions, with its declarations.
struct Calls {
  static size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
  static const char* cublasLtGetStatusName(cublasStatus_t status) {
    return status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                                 : "CUBLAS_STATUS_OTHER";
  }
  static const char* cublasLtGetStatusString(cublasStatus_t) { return "as the fake library says"; }

  static cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
    CUcontext context = nullptr;
    if (driver().cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) {
      refuse("cublasLtCreate: no device is current");
      return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    FakeCublasLtBooks& books = fake_cublas_lt_books();
    if (!books.can_create) return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = std::bit_cast<cublasLtHandle_t>(&books);
    return CUBLAS_STATUS_SUCCESS;
  }
  static cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    return is_handle(handle) ? CUBLAS_STATUS_SUCCESS : refuse("cublasLtDestroy: no handle");
  }

  static cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t to, size_t bytes,
                                                        cublasComputeType_t compute,
                                                        cudaDataType_t scale) {
    Operation operation;
    operation.compute = compute;
    operation.scale = scale;
    return begin("cublasLtMatmulDescInit", to, bytes, operation);
  }
  static cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t to,
                                                       cublasLtMatmulDescAttributes_t which,
                                                       const void* value, size_t bytes) {
    return set<Operation>("cublasLtMatmulDescSetAttribute", to, which, value, bytes);
  }

  static cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t to, size_t bytes,
                                                          cudaDataType type, uint64_t rows,
                                                          uint64_t columns, int64_t ld) {
    Layout layout;
    layout.type = type;
    layout.rows = rows;
    layout.columns = columns;
    layout.ld = ld;
    return begin("cublasLtMatrixLayoutInit", to, bytes, layout);
  }
  static cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t to,
                                                         cublasLtMatrixLayoutAttribute_t which,
                                                         const void* value, size_t bytes) {
    return set<Layout>("cublasLtMatrixLayoutSetAttribute", to, which, value, bytes);
  }

  static cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t to,
                                                              size_t bytes) {
    return begin("cublasLtMatmulPreferenceInit", to, bytes, Preference());
  }
  static cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
      cublasLtMatmulPreference_t to, cublasLtMatmulPreferenceAttributes_t which, const void* value,
      size_t bytes) {
    return set<Preference>("cublasLtMatmulPreferenceSetAttribute", to, which, value, bytes);
  }

  static cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
      cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
      cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
      cublasLtMatmulPreference_t preferred, int most, cublasLtMatmulHeuristicResult_t results[],
      int* count) {
    FakeCublasLtBooks& books = fake_cublas_lt_books();
    const Problem problem = problem_of(operation, a, b, c, d);
    const auto preference = read<Preference>(preferred);
    if (!is_handle(handle)) return refuse("advice: no handle");
    if (most < 1 || count == nullptr) return refuse("advice: no room for an answer");
    if (const std::string why = problem.fault(); !why.empty()) return refuse("advice: " + why);
    if (preference.kind != kPreference) return refuse("advice: no preference");
    ++books.advised;
    books.reduction_schemes = preference.reductions;
    *count = 0;
    if (!books.knows_anything || (problem.has_bias() && !books.knows_bias) ||
        (problem.has_aux() && !books.knows_gelu)) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    Algorithm algorithm;
    algorithm.problem = problem.hash();
    algorithm.alignments = preference.alignments;
    // Alignments above 16 bytes make no difference to a kernel.
    const auto expected = [](bool is_there, const void* address) {
      return is_there ? std::min<uint32_t>(alignment_of(address), 16) : 1;
    };
    algorithm.bias_alignment = expected(problem.has_bias(), problem.operation.bias);
    algorithm.aux_alignment = expected(problem.has_aux(), problem.operation.aux);
    const uint64_t wanted = problem.a.rows * problem.a.columns >= 4096 ? 2048 : 0;
    algorithm.workspace = std::min(wanted, preference.workspace);
    // Reports the best candidate as unsupported, which the real library may do too.
    if (most > 1) {
      results[0].state = CUBLAS_STATUS_NOT_SUPPORTED;
      *count = 1;
    }
    cublasLtMatmulHeuristicResult_t& result = results[(*count)++];
    std::memcpy(&result.algo, &algorithm, sizeof(algorithm));
    result.workspaceSize = algorithm.workspace;
    result.state = CUBLAS_STATUS_SUCCESS;
    return CUBLAS_STATUS_SUCCESS;
  }

  static cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                       const void* alpha, const void* a, cublasLtMatrixLayout_t ad,
                                       const void* b, cublasLtMatrixLayout_t bd, const void* beta,
                                       const void* c, cublasLtMatrixLayout_t cd, void* d,
                                       cublasLtMatrixLayout_t dd,
                                       const cublasLtMatmulAlgo_t* advised, void* workspace,
                                       size_t workspace_bytes, cudaStream_t stream) {
    auto queued = std::make_unique<Queued>();
    queued->problem = problem_of(operation, ad, bd, cd, dd);
    const Problem& problem = queued->problem;
    if (!is_handle(handle)) return refuse("matmul: no handle");
    if (const std::string why = problem.fault(); !why.empty()) return refuse("matmul: " + why);
    if (alpha == nullptr || beta == nullptr) return refuse("matmul: no alpha or beta");
    const bool wide = problem.operation.scale == CUDA_R_64F;
    queued->alpha = wide ? read<double>(alpha) : read<float>(alpha);
    queued->beta = wide ? read<double>(beta) : read<float>(beta);
    if (!fake_cublas_lt_books().takes_bias_beside_c && problem.has_bias() && queued->beta != 0) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (a == nullptr || b == nullptr || d == nullptr || (queued->beta != 0 && c == nullptr)) {
      return refuse("matmul: a matrix without an address");
    }
    if (c == d && (problem.c.ld != problem.d.ld || problem.c.stride != problem.d.stride)) {
      return refuse("matmul: in place, but c and d have other layouts");
    }
    const auto algorithm = read<Algorithm>(advised);
    if (algorithm.kind != kAlgorithm || algorithm.problem != problem.hash()) {
      return refuse("matmul: the algorithm is of another problem");
    }
    const void* const addresses[] = {a, b, c, d};
    for (size_t i = 0; i < 4; ++i) {
      if (std::bit_cast<uintptr_t>(addresses[i]) % algorithm.alignments[i] != 0) {
        return refuse("matmul: matrix " + std::to_string(i) + " is less aligned than was said");
      }
    }
    if (problem.has_bias() && alignment_of(problem.operation.bias) < algorithm.bias_alignment) {
      return refuse("matmul: the bias is less aligned than the algorithm's");
    }
    if (problem.has_aux() && alignment_of(problem.operation.aux) < algorithm.aux_alignment) {
      return refuse("matmul: the auxiliary matrix is less aligned than the algorithm's");
    }
    if (workspace_bytes < algorithm.workspace) return refuse("matmul: too little workspace");
    if (algorithm.workspace > 0 && alignment_of(workspace) < 16) {
      return refuse("matmul: a workspace that is not aligned");
    }
    queued->a = a;
    queued->b = b;
    queued->c = c;
    queued->d = d;
    queued->workspace = workspace;
    queued->workspace_bytes = workspace_bytes;
    FakeCublasLtBooks& books = fake_cublas_lt_books();
    ++books.products;
    emulation::note_queued("product");
    books.epilogue = problem.operation.epilogue;
    books.processors = problem.operation.processors;
    books.beta = queued->beta;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    (void)driver().cuStreamIsCapturing(stream, &status);
    const bool is_captured = status != CU_STREAM_CAPTURE_STATUS_NONE;
    // Owned by run_queued from here on; it may run before this call returns.
    Queued* const running = queued.release();
    if (is_captured) keep_captured(std::unique_ptr<Queued>(running));
    if (driver().cuLaunchHostFunc(stream, is_captured ? &run_captured : &run_queued, running) !=
        CUDA_SUCCESS) {
      if (!is_captured) delete running;
      refuse("matmul: the stream takes no work");
      return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    return CUBLAS_STATUS_SUCCESS;
  }
};

LoadedCublasLt load_fake_cublas_lt() {
  LoadedCublasLt loaded;
#define LS_FAKE_CUBLAS_LT(name) loaded.functions.name = &Calls::name;
  LS_CUBLAS_LT_FUNCTIONS(LS_FAKE_CUBLAS_LT)
#undef LS_FAKE_CUBLAS_LT
  loaded.version = CUBLAS_VERSION;
  loaded.file = "the emulated GPU's cuBLASLt";
  return loaded;
}

/// Installs a library that is never destroyed, as it may still be in use.
CublasLtLibrary& install(CublasLtLibrary::Loader load) {
  return set_cublas_lt(*new CublasLtLibrary(std::move(load)));
}

LoadedCublasLt load_none() {
  LoadedCublasLt none;
  none.reason = "there is no cuBLASLt in this test";
  return none;
}

}  // namespace

FakeCublasLtBooks& fake_cublas_lt_books() {
  static FakeCublasLtBooks books;
  return books;
}

void install_fake_cublas_lt() { install(&load_fake_cublas_lt); }

CublasLtScope::CublasLtScope(Library library)
    : before_(install(library == Library::kMissing ? &load_none : &load_fake_cublas_lt)) {
  fake_cublas_lt_books() = {};
  // The fake library accesses memory on the CPU, which real GPU memory does not allow.
  const std::vector<std::string> devices = availability().devices;
  const bool emulated = devices.empty() || devices.front().starts_with("Emulated GPU");
  is_fake_ = library == Library::kPresent && emulated;
  if (library == Library::kPresent && !emulated) set_cublas_lt(before_);
}

CublasLtScope::~CublasLtScope() { set_cublas_lt(before_); }

}  // namespace lockstep::cuda
