#include "dist/rendezvous/host_addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "core/base/check.h"

namespace lockstep::dist {
namespace {

bool is_of_one_link(const sockaddr& address) {
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

bool is_ipv6(const std::string& address) { return address.find(':') != std::string::npos; }

}  // namespace

std::vector<std::string> host_addresses() {
  ifaddrs* list = nullptr;
  LS_CHECK(getifaddrs(&list) == 0, BackendError, "[host_addresses] getifaddrs failed: {}.",
           std::strerror(errno));
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::vector<std::string> addresses;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0 ||
        (each->ifa_flags & IFF_LOOPBACK) != 0) {
      continue;
    }
    const sa_family_t family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    if (is_of_one_link(*each->ifa_addr)) continue;
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(each->ifa_addr, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) ==
        0) {
      addresses.emplace_back(text.data());
    }
  }
  std::ranges::stable_partition(addresses, [](const std::string& a) { return !is_ipv6(a); });
  return addresses;
}

}  // namespace lockstep::dist
