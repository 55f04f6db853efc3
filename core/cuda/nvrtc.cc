#include "core/cuda/nvrtc.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"
#include "core/base/error.h"

namespace lockstep::cuda {

namespace {

constexpr int kOldestNvrtc = 12;
constexpr int kNewestNvrtc = 13;

std::atomic<NvrtcLibrary*>& current_nvrtc() {
  // Never destroyed: kernels are made until the process ends.
  static std::atomic<NvrtcLibrary*> library = new NvrtcLibrary([] { return load_nvrtc(); });
  return library;
}

/// A text on its way through the compiler.
class NvrtcProgram {
 public:
  NvrtcProgram(const Nvrtc& functions, const std::string& text,
               const std::vector<NamedHeader>& headers)
      : functions_(functions) {
    std::vector<const char*> names, texts;
    for (const NamedHeader& header : headers) {
      names.push_back(header.name.c_str());
      texts.push_back(header.text.c_str());
    }
    check(
        functions_.nvrtcCreateProgram(&program_, text.c_str(), "kernel.cu",
                                      static_cast<int>(headers.size()), texts.data(), names.data()),
        "nvrtcCreateProgram");
  }
  ~NvrtcProgram() { (void)functions_.nvrtcDestroyProgram(&program_); }
  NvrtcProgram(const NvrtcProgram&) = delete;
  NvrtcProgram& operator=(const NvrtcProgram&) = delete;

  void compile(const std::vector<std::string>& flags) {
    std::vector<const char*> options;
    for (const std::string& flag : flags) options.push_back(flag.c_str());
    const nvrtcResult result =
        functions_.nvrtcCompileProgram(program_, static_cast<int>(options.size()), options.data());
    LS_CHECK(result != NVRTC_ERROR_COMPILATION, DeviceError,
             "[compile] NVRTC does not compile a kernel: {}", first_messages());
    check(result, "nvrtcCompileProgram");
  }
  std::vector<std::byte> cubin() const {
    size_t bytes = 0;
    check(functions_.nvrtcGetCUBINSize(program_, &bytes), "nvrtcGetCUBINSize");
    std::vector<std::byte> cubin(bytes);
    check(functions_.nvrtcGetCUBIN(program_, reinterpret_cast<char*>(cubin.data())),
          "nvrtcGetCUBIN");
    return cubin;
  }

 private:
  void check(nvrtcResult result, const char* function) const {
    LS_CHECK(result == NVRTC_SUCCESS, DeviceError, "[compile] {} failed: {}.", function,
             functions_.nvrtcGetErrorString(result));
  }
  std::string first_messages() const {
    constexpr size_t kMost = 2000;  // bytes; the rest follows from the first
    size_t bytes = 0;
    check(functions_.nvrtcGetProgramLogSize(program_, &bytes), "nvrtcGetProgramLogSize");
    std::string log(bytes, '\0');
    check(functions_.nvrtcGetProgramLog(program_, log.data()), "nvrtcGetProgramLog");
    log.resize(std::min(log.find('\0'), std::min(log.size(), kMost)));
    return log;
  }

  const Nvrtc& functions_;
  nvrtcProgram program_ = nullptr;
};

}  // namespace

std::vector<std::string> nvrtc_files() {
  return library_files("libnvrtc.so", kNewestNvrtc, kOldestNvrtc);
}

LoadedNvrtc load_nvrtc() {
  return open_first("NVRTC", nvrtc_files(), "CUDA's NVRTC", [](const std::string& file) {
    return open_library(file, "nvrtcVersion", &read_nvrtc);
  });
}

LoadedNvrtc read_nvrtc(const std::string& file, const FindFunction& find) {
  LoadedNvrtc loaded;
  loaded.file = file;
  const std::string expected = fmt::format("NVRTC {} or {}", kNewestNvrtc, kOldestNvrtc);
#define LS_NVRTC_FIND(name) LS_FIND_FUNCTION(loaded, find, name, expected)
  LS_NVRTC_FUNCTIONS(LS_NVRTC_FIND)
#undef LS_NVRTC_FIND
  int major = 0, minor = 0;
  if (loaded.functions.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS || major < kOldestNvrtc ||
      major > kNewestNvrtc) {
    return LoadedNvrtc::none(
        fmt::format("{} is version {}.{}: expected {}", file, major, minor, expected));
  }
  loaded.version = static_cast<size_t>(major) * 10000 + static_cast<size_t>(minor) * 100;
  return loaded;
}

NvrtcLibrary& nvrtc() { return *current_nvrtc().load(std::memory_order_acquire); }

NvrtcLibrary& set_nvrtc(NvrtcLibrary& library) { return *current_nvrtc().exchange(&library); }

std::vector<std::byte> compile_cuda(const std::string& text, const std::vector<std::string>& flags,
                                    const std::vector<NamedHeader>& headers) {
  const LoadedNvrtc& library = nvrtc().loaded();
  LS_CHECK(library.reason.empty(), DeviceError, "[compile] {}.", library.reason);
  NvrtcProgram program(library.functions, text, headers);
  program.compile(flags);
  return program.cubin();
}

}  // namespace lockstep::cuda
