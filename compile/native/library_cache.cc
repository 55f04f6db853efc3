#include "compile/native/library_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/folders.h"
#include "core/base/files/mapped_file.h"

namespace lockstep::compiler {

namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::byte>;

// Behind a library's own bytes, which a loader never looks at: "\nlockstep-library HASH WHAT\n".
constexpr std::string_view kSeal = "\nlockstep-library ";
constexpr size_t kHashDigits = 32;
constexpr size_t kMostWhat = 400;
constexpr std::string_view kEnding = ".so";

std::string hash_of(Bytes bytes) { return ContentHasher().append(bytes).result().hex(); }

/// What the file says of itself, if it is whole.
std::optional<std::string> read_seal(const fs::path& file) {
  try {
    const MappedFile mapped(file);
    const Bytes bytes = mapped.bytes();
    const size_t most = kSeal.size() + kHashDigits + kMostWhat + 2;
    const Bytes end = bytes.last(std::min(bytes.size(), most));
    const std::string_view text(reinterpret_cast<const char*>(end.data()), end.size());
    const size_t at = text.rfind(kSeal);
    if (at == std::string_view::npos || text.back() != '\n') return std::nullopt;
    const std::string_view seal = text.substr(at + kSeal.size());
    if (seal.size() < kHashDigits + 2) return std::nullopt;
    const Bytes sealed = bytes.first(bytes.size() - (text.size() - at));
    const bool is_whole =
        seal.substr(0, kHashDigits) == hash_of(sealed) && seal[kHashDigits] == ' ';
    check_mapped(bytes.data());
    if (!is_whole) return std::nullopt;
    return std::string(seal.substr(kHashDigits + 1, seal.size() - kHashDigits - 2));
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// What the names of this machine's workplaces begin with: others may share the folder.
std::string workplace_start() {
  char host[256] = {};
  (void)::gethostname(host, sizeof(host) - 1);
  return std::string("building-") + host + "-";
}

/// Whether its process has ended: "building-HOST-PID-XXXXXX".
bool is_left_behind(const fs::path& workplace, const std::string& start) {
  const std::string name = workplace.filename().string();
  if (!name.starts_with(start)) return false;
  const int process = std::atoi(name.c_str() + start.size());
  return process <= 0 || (::kill(process, 0) != 0 && errno == ESRCH);
}

/// Removes the workplaces of processes that were killed.
void remove_left_behind(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> left;
  const std::string start = workplace_start();
  for (const fs::directory_entry& each : fs::directory_iterator(folder, ignored)) {
    if (is_left_behind(each.path(), start)) left.push_back(each.path());
  }
  for (const fs::path& workplace : left) fs::remove_all(workplace, ignored);
}

}  // namespace

LibraryCache::LibraryCache(fs::path folder) : folder_(std::move(folder)) {
  struct stat found {};
  if (::stat(folder_.c_str(), &found) != 0) return;
  LS_CHECK(S_ISDIR(found.st_mode), Error, "[cache] {} is no folder.", folder_.string());
  constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
  LS_CHECK(found.st_uid == ::geteuid() && (found.st_mode & kOthersWrite) == 0, Error,
           "[cache] {} is not used: expected a folder of this user that nobody else may write to. "
           "Set LOCKSTEP_CACHE_DIR to another folder, or run `chmod go-w {}`.",
           folder_.string(), folder_.string());
}

std::optional<fs::path> LibraryCache::usual_folder() {
  if (const std::string chosen = environment("LOCKSTEP_CACHE_DIR"); !chosen.empty()) return chosen;
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) {
    return fs::path(cache) / "lockstep";
  }
  if (const std::string home = environment("HOME"); !home.empty()) {
    return fs::path(home) / ".cache" / "lockstep";
  }
  return std::nullopt;
}

fs::path LibraryCache::file_of(const ContentHash& key) const {
  return folder_ / (key.hex() + std::string(kEnding));
}

std::optional<fs::path> LibraryCache::find(const ContentHash& key) const {
  fs::path file = file_of(key);
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0 || found.st_uid != ::geteuid() || !read_seal(file)) {
    return std::nullopt;
  }
  (void)::utimensat(AT_FDCWD, file.c_str(), nullptr, 0);  // the time of its last use
  return file;
}

fs::path LibraryCache::add(const ContentHash& key, const fs::path& library,
                           const std::string& what) const {
  const MappedFile compiled(library);
  std::string told = what.substr(0, kMostWhat);
  std::ranges::replace(told, '\n', ' ');
  const std::string seal = std::string(kSeal) + hash_of(compiled.bytes()) + " " + told + "\n";
  fs::path file = file_of(key);
  AtomicFile written(file);
  written.write(compiled.bytes());
  written.write(std::as_bytes(std::span(seal)));
  written.publish();
  return file;
}

fs::path LibraryCache::make_workplace() const {
  if (!name_exists(folder_)) {
    create_folders(folder_, "cache");
    (void)::chmod(folder_.c_str(), S_IRWXU);  // whatever the umask lets others do
  }
  remove_left_behind(folder_);
  std::string name =
      (folder_ / (workplace_start() + std::to_string(::getpid()) + "-XXXXXX")).string();
  LS_CHECK(::mkdtemp(name.data()) != nullptr, Error, "[cache] {} takes no file: {}.",
           folder_.string(), std::strerror(errno));
  return name;
}

std::vector<LibraryCache::Entry> LibraryCache::list() const {
  std::vector<Entry> entries;
  std::error_code error;
  for (const fs::directory_entry& each : fs::directory_iterator(folder_, error)) {
    struct stat found {};
    if (each.path().extension() != kEnding || ::stat(each.path().c_str(), &found) != 0) continue;
    const auto used = std::chrono::system_clock::from_time_t(found.st_mtime);
    entries.push_back(
        {each.path(), static_cast<uint64_t>(found.st_size),
         std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now() - used),
         read_seal(each.path()).value_or("damaged")});
  }
  LS_CHECK(!error || error == std::errc::no_such_file_or_directory, Error,
           "[cache] {} cannot be read: {}.", folder_.string(), error.message());
  std::ranges::sort(entries, {}, &Entry::file);
  return entries;
}

std::vector<LibraryCache::Entry> LibraryCache::prune(std::chrono::seconds unused_for) const {
  std::vector<Entry> gone;
  for (const Entry& entry : list()) {
    if (entry.age < unused_for && entry.what != "damaged") continue;
    std::error_code error;
    fs::remove(entry.file, error);
    LS_CHECK(!error, Error, "[cache] {} cannot be removed: {}.", entry.file.string(),
             error.message());
    gone.push_back(entry);
  }
  remove_left_behind(folder_);
  return gone;
}

}  // namespace lockstep::compiler
