#include "launcher/launch/launch_facts.h"

#include <netdb.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>

#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_number.h"
#include "dist/rendezvous/socket.h"

namespace lockstep::launcher {
namespace {

namespace fs = std::filesystem;

/// Largest hostfile: a million hosts.
constexpr uint64_t kMostHostfileBytes = uint64_t{64} << 20;

bool is_program(const fs::path& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
}

std::optional<std::string> in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
  for (std::string each; std::getline(folders, each, ':');) {
    if (!each.empty() && is_program(fs::path(each) / name)) return (fs::path(each) / name).string();
  }
  return std::nullopt;
}

/// Finds a program as mpirun does: in PATH, then in the folder.
std::optional<std::string> find_program(const std::string& name, const std::string& folder) {
  if (name.find('/') == name.npos) {
    if (const auto found = in_path(name)) return found;
  }
  std::error_code ignored;
  const fs::path here = folder.empty() ? fs::current_path(ignored) : fs::absolute(folder, ignored);
  if (is_program(here / name)) return (here / name).string();
  return std::nullopt;
}

std::optional<std::string> read_file(const std::string& path) {
  try {
    return read_whole_file(path, kMostHostfileBytes);
  } catch (const FileError&) {
    return std::nullopt;
  }
}

bool resolves(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  ::freeaddrinfo(found);
  return true;
}

std::string output_of(const std::string& program) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      ::popen(fmt::format("'{}' --version 2>&1 < /dev/null", program).c_str(), "re"), ::pclose);
  if (pipe == nullptr) return "";
  std::string text;
  std::array<char, 512> part;
  while (text.size() < 4096 && std::fgets(part.data(), part.size(), pipe.get()) != nullptr) {
    text += part.data();
  }
  return text;
}

/// Number of cores, not hardware threads, among the processors that this process may run on.
int count_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    return static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  }
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
    const auto package = read_file(folder + "physical_package_id");
    const auto core = read_file(folder + "core_id");
    cores.insert(package && core ? *package + *core : fmt::format("cpu{}", cpu));
  }
  return std::max(1, static_cast<int>(cores.size()));
}

std::string random_bytes(size_t bytes) {
  std::string raw(bytes, '\0');
  LS_CHECK(::getrandom(raw.data(), raw.size(), 0) == static_cast<ssize_t>(bytes), Error,
           "[launch] the system gives no random numbers for the job's secret: {}.",
           std::strerror(errno));
  return raw;
}

uint16_t free_port() {
  // Below the ports that systems give to connections, one of which could take it before rank 0.
  constexpr uint32_t kFirst = 15000;
  constexpr uint32_t kPorts = 15000;
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    uint32_t number = 0;
    std::memcpy(&number, random_bytes(sizeof(number)).data(), sizeof(number));
    dist::Endpoint endpoint{"127.0.0.1", static_cast<uint16_t>(kFirst + number % kPorts)};
    try {
      (void)dist::listen_at(endpoint);
      return endpoint.port;
    } catch (const dist::AddressInUse&) {
      continue;
    }
  }
  throw Error(
      fmt::format("[launch] no free port of 127.0.0.1 for the ranks to meet: {} from {} to {} were "
                  "tried.",
                  kTries, kFirst, kFirst + kPorts - 1));
}

std::string random_hex(size_t bytes) {
  const std::string raw = random_bytes(bytes);
  std::string text;
  for (const char c : raw) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

}  // namespace

std::string LaunchFacts::variable(const std::string& name) const {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

std::optional<std::pair<int, std::string>> open_mpi_version(const std::string& text) {
  constexpr std::string_view kName = "(Open MPI) ";
  const size_t at = text.find(kName);
  if (at == text.npos) return std::nullopt;
  const size_t begin = at + kName.size();
  const std::string version = text.substr(begin, text.find_first_of(" \n", begin) - begin);
  const std::optional<int> major = parse_number<int>(version.substr(0, version.find('.')));
  if (!major) return std::nullopt;
  return std::pair(*major, version);
}

LaunchFacts find_launch_facts() {
  LaunchFacts facts;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != text.npos)
      facts.variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  facts.no_mpirun = "no mpirun in PATH";
  if (const auto mpirun = in_path("mpirun")) {
    const std::string text = output_of(*mpirun);
    if (const auto version = open_mpi_version(text)) {
      facts.mpirun = *mpirun;
      facts.open_mpi = version->first;
      facts.mpirun_version = version->second;
    } else {
      facts.no_mpirun =
          fmt::format("{} is not Open MPI's: \"{}\"", *mpirun, text.substr(0, text.find('\n')));
    }
  }
  facts.srun = in_path("srun").value_or("");
  std::error_code ignored;
  facts.program = fs::read_symlink("/proc/self/exe", ignored).string();
  facts.folder = fs::current_path(ignored).string();
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) facts.host = host.data();
  facts.cores = count_cores();
  facts.root = ::geteuid() == 0;
  struct statvfs shared {};
  if (::statvfs("/dev/shm", &shared) == 0) {
    facts.shared_memory_bytes = uint64_t{shared.f_bavail} * shared.f_frsize;
  }
  facts.read = read_file;
  facts.find_program = find_program;
  facts.resolves = resolves;
  facts.free_port = free_port;
  facts.job_id = random_hex(6);
  facts.job_secret = random_hex(16);
  return facts;
}

}  // namespace lockstep::launcher
