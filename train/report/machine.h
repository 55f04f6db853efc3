#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::train {

/// What this machine is and how much of it this process may use. Linux only: read from /proc and
/// /sys under `root`, which tests replace. What a system does not tell comes back empty.

/// The processor's own name, "Intel(R) Xeon(R) ...".
std::string cpu_model(const std::filesystem::path& root = "/");

/// Instruction-set extensions that kernels care about, as the kernel spells them ("avx2",
/// "amx_bf16").
std::vector<std::string> isa_features(const std::filesystem::path& root = "/");

/// Cores this process can keep busy: those in its affinity mask, fewer if a control group's quota
/// (v1 or v2, rounded up) says so. At least 1.
int cores_allowed(const std::filesystem::path& root = "/");

/// Bytes of memory this process can use: physical memory, less if a control group says so.
uint64_t memory_allowed(const std::filesystem::path& root = "/");

/// The distribution's name and release, "Debian GNU/Linux 12 (bookworm)".
std::string operating_system(const std::filesystem::path& root = "/");

}  // namespace lockstep::train
