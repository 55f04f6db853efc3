#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::train {

/// This machine's hardware and the part that this process may use. Linux only: read from /proc and
/// /sys under `root`, which tests replace. Results that the system does not report are empty.

/// The processor's model name, "Intel(R) Xeon(R) ...".
std::string cpu_model(const std::filesystem::path& root = "/");

/// The processor's instruction-set extensions that compute kernels use, as spelled in /proc/cpuinfo
/// ("avx2", "amx_bf16").
std::vector<std::string> isa_features(const std::filesystem::path& root = "/");

/// Cores that this process may use: those in its affinity mask, limited by the control group's
/// quota (v1 or v2, rounded up). The result is at least 1.
int cores_allowed(const std::filesystem::path& root = "/");

/// Bytes of memory that this process may use: physical memory, limited by its control group.
uint64_t memory_allowed(const std::filesystem::path& root = "/");

/// Seconds for which the calling thread was ready to run and others had its core, since it began;
/// nothing where the system does not tell (/proc/thread-self/schedstat).
std::optional<double> core_wait_seconds(const std::filesystem::path& root = "/");

/// The distribution's name and release, "Debian GNU/Linux 12 (bookworm)".
std::string operating_system(const std::filesystem::path& root = "/");

}  // namespace lockstep::train
