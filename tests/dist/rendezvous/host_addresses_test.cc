#include "dist/rendezvous/host_addresses.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace lockstep::dist {
namespace {

/// The addresses of one family of interfaces that are up and no loopback, as the system lists them.
std::vector<std::string> listed(int family) {
  std::vector<std::string> addresses;
  ifaddrs* list = nullptr;
  EXPECT_EQ(getifaddrs(&list), 0);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    const bool counts = each->ifa_addr != nullptr && each->ifa_addr->sa_family == family &&
                        (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0;
    if (!counts) continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* const address =
        family == AF_INET
            ? static_cast<const void*>(&reinterpret_cast<sockaddr_in*>(each->ifa_addr)->sin_addr)
            : &reinterpret_cast<sockaddr_in6*>(each->ifa_addr)->sin6_addr;
    EXPECT_NE(inet_ntop(family, address, text.data(), text.size()), nullptr);
    addresses.emplace_back(text.data());
  }
  freeifaddrs(list);
  return addresses;
}

TEST(HostAddresses, AreThoseOfInterfacesThatAreUpVersion4First) {
  std::vector<std::string> expected = listed(AF_INET);
  for (const std::string& address : listed(AF_INET6)) {
    // An address of one link is none without the interface's name, which other hosts do not know.
    if (!address.starts_with("fe80:")) expected.push_back(address);
  }
  EXPECT_EQ(host_addresses(), expected);
}

}  // namespace
}  // namespace lockstep::dist
