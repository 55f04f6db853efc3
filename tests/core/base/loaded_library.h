#pragma once

#include <link.h>

#include <functional>
#include <string_view>
#include <utility>

namespace lockstep {

/// Calls `look` with the loaded library whose file has this name. Returns whether there is one.
inline bool look_at_library(std::string_view name,
                            const std::function<void(const dl_phdr_info&)>& look) {
  auto search = std::pair(name, &look);
  return dl_iterate_phdr(
             [](dl_phdr_info* info, size_t, void* data) {
               const auto& [wanted, found] = *static_cast<decltype(search)*>(data);
               if (std::string_view(info->dlpi_name).find(wanted) == std::string_view::npos)
                 return 0;
               (*found)(*info);
               return 1;
             },
             &search) != 0;
}

}  // namespace lockstep
