#include "tests/emulation/fake_nvrtc.h"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>

#include "core/base/files/atomic_file.h"
#include "core/base/files/regular_file.h"
#include "core/base/mutex.h"
#include "core/cuda/nvrtc.h"

namespace lockstep::cuda {

namespace {

namespace fs = std::filesystem;

struct FakeProgram {
  std::string text, log, module;
};

FakeProgram& program_of(nvrtcProgram program) { return *reinterpret_cast<FakeProgram*>(program); }

/// Runs a command of the shell, and returns whether it succeeded; `output` is what it prints.
bool run_command(const std::string& command, std::string& output) {
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return false;
  char line[256];
  while (std::fgets(line, sizeof(line), pipe) != nullptr) output += line;
  return pclose(pipe) == 0;
}

/// What was compiled in this process, by its text: tests ask for the same kernels again and again.
struct Modules {
  Mutex mutex;
  std::map<std::string, std::string> by_text LS_GUARDED_BY(mutex);
};
Modules& known_modules() {
  static auto* const modules = new Modules;
  return *modules;
}

nvrtcResult compile(nvrtcProgram handle, int, const char* const*) {
  FakeProgram& program = program_of(handle);
  {
    const MutexLock lock(known_modules().mutex);
    const auto known = known_modules().by_text.find(program.text);
    if (known != known_modules().by_text.end()) {
      program.module = known->second;
      return NVRTC_SUCCESS;
    }
  }
  std::string folder = (fs::temp_directory_path() / "emulated-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return NVRTC_ERROR_OUT_OF_MEMORY;
  const fs::path text = fs::path(folder) / "kernel.cc", module = fs::path(folder) / "module.so";
  write_text(text, program.text);
  const bool compiled =
      run_command(std::string(LS_EMULATION_CXX) +
                      " -std=c++20 -O1 -w -fPIC -shared -ffp-contract=off -DLS_EMULATED_MODULE"
                      " -I" LS_EMULATION_SOURCES " -include " LS_EMULATION_SOURCES
                      "/tests/emulation/device.h -o " +
                      module.string() + " " + text.string(),
                  program.log);
  if (compiled) program.module = read_whole_file(module);
  fs::remove_all(folder);
  if (compiled) {
    const MutexLock lock(known_modules().mutex);
    known_modules().by_text.emplace(program.text, program.module);
  }
  return compiled ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

LoadedNvrtc load_fake_nvrtc() {
  LoadedNvrtc loaded;
  loaded.file = "the emulated GPU's";
  loaded.version = 130000;
  loaded.functions = {
      .nvrtcVersion =
          [](int* major, int* minor) {
            *major = 13;
            *minor = 0;
            return NVRTC_SUCCESS;
          },
      .nvrtcGetErrorString = [](nvrtcResult) { return "an error of the emulated compiler"; },
      .nvrtcCreateProgram =
          [](nvrtcProgram* program, const char* text, const char*, int, const char* const*,
             const char* const*) {
            *program = reinterpret_cast<nvrtcProgram>(new FakeProgram{.text = text});
            return NVRTC_SUCCESS;
          },
      .nvrtcDestroyProgram =
          [](nvrtcProgram* program) {
            delete &program_of(*program);
            return NVRTC_SUCCESS;
          },
      .nvrtcCompileProgram = &compile,
      .nvrtcGetProgramLogSize =
          [](nvrtcProgram program, size_t* bytes) {
            *bytes = program_of(program).log.size() + 1;
            return NVRTC_SUCCESS;
          },
      .nvrtcGetProgramLog =
          [](nvrtcProgram program, char* log) {
            std::strcpy(log, program_of(program).log.c_str());
            return NVRTC_SUCCESS;
          },
      .nvrtcGetCUBINSize =
          [](nvrtcProgram program, size_t* bytes) {
            *bytes = program_of(program).module.size();
            return NVRTC_SUCCESS;
          },
      .nvrtcGetCUBIN =
          [](nvrtcProgram program, char* module) {
            const std::string& made = program_of(program).module;
            std::memcpy(module, made.data(), made.size());
            return NVRTC_SUCCESS;
          },
  };
  return loaded;
}

}  // namespace

void install_fake_nvrtc() { set_nvrtc(*new NvrtcLibrary(&load_fake_nvrtc)); }

}  // namespace lockstep::cuda
