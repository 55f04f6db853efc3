#include "compile/native/native_build.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>

#include "core/base/build_identity.h"
#include "core/base/check.h"
#include "core/base/owned_fd.h"

namespace lockstep::compiler {

namespace {

namespace fs = std::filesystem;

/// The lock of a cache, which the one that compiles holds. Without it all is right, too, but work
/// may be done twice; so it is not waited for longer than a compiler may take.
OwnedFd lock_of(const fs::path& folder, const BuildLimits& limits) {
  OwnedFd lock(::open((folder / "lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  const auto end = std::chrono::steady_clock::now() + limits.time;
  while (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && !limits.stops() &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return lock;
}

Toolchain machine_toolchain(const BuildLimits& limits, const ProcessEnvironment& environment) {
  std::optional<Toolchain> found = find_toolchain(limits, environment);
  LS_CHECK(
      found, Error,
      "[compile] there is no C++ compiler: expected one of $CXX, c++, g++ and clang++. Install "
      "one (Debian: apt install g++), or set CXX.");
  return *std::move(found);
}

/// What decides which bytes come of a source, with the program that makes them.
ContentHash key_of(const NativeSource& source, const Toolchain& toolchain) {
  ContentHasher hasher;
  hasher.add(build_identity()).add(source.text).add(toolchain.program).add(toolchain.version);
  hasher.add(uint64_t{source.flags.size()});
  for (const std::string& flag : source.flags) hasher.add(flag);
  return hasher.result();
}

void write_file(const fs::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  LS_CHECK(file << bytes << std::flush, Error, "[compile] {} cannot be written: {}.", path.string(),
           std::strerror(errno));
}

/// Has a source compiled to a file.
void make_file(const NativeSource& source, const Toolchain& toolchain, const fs::path& workplace,
               const fs::path& to, const BuildLimits& limits,
               const ProcessEnvironment& environment) {
  if (source.compiler != nullptr) {
    const std::vector<std::byte> module = source.compiler->compile({source.text, source.flags});
    write_file(to, {reinterpret_cast<const char*>(module.data()), module.size()});
    return;
  }
  const fs::path text = workplace / "source.cc";
  write_file(text, source.text);
  compile_library(toolchain, text, source.flags, to, limits, environment);
}

/// The cache in a folder, unless that cannot be used.
std::optional<LibraryCache> open_cache(const std::optional<fs::path>& folder) {
  if (!folder) return std::nullopt;
  try {
    return LibraryCache(*folder);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// A new folder to compile in. Drops a cache that takes no files: the disk is full, or read-only.
fs::path new_workplace(std::optional<LibraryCache>& cache) {
  try {
    if (cache) return cache->make_workplace();
  } catch (const Error&) {
    cache.reset();
  }
  std::string name = (fs::temp_directory_path() / "lockstep-XXXXXX").string();
  LS_CHECK(::mkdtemp(name.data()) != nullptr, Error, "[compile] {} takes no file: {}.", name,
           std::strerror(errno));
  return name;
}

}  // namespace

NativeFile::~NativeFile() {
  std::error_code ignored;
  if (!temporary_folder_.empty()) fs::remove_all(temporary_folder_, ignored);
}

NativeFile build_native(const NativeSource& source, const BuildLimits& limits,
                        const BuildPlace& place) {
  const Toolchain toolchain = source.compiler != nullptr
                                  ? Toolchain{.program = "", .version = source.compiler->version()}
                                  : machine_toolchain(limits, place.environment);
  const ContentHash key = key_of(source, toolchain);
  std::optional<LibraryCache> cache = open_cache(place.cache);
  const auto made_before = [&] { return cache ? cache->find(key) : std::nullopt; };
  if (auto file = made_before()) return {*std::move(file), {}};
  const fs::path workplace = new_workplace(cache);
  NativeFile made(workplace / "library.so", workplace);
  const OwnedFd lock = cache ? lock_of(cache->folder(), limits) : OwnedFd();
  if (auto file = made_before()) return {*std::move(file), {}};
  make_file(source, toolchain, workplace, made.path(), limits, place.environment);
  if (!cache) return made;
  return {cache->add(key, made.path(), source.what), {}};
}

}  // namespace lockstep::compiler
