#include "app/machine/bus_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "app/print/failure.h"
#include "base/file.h"

namespace braid::bus_errors_test {

namespace fs = std::filesystem;

TEST(BusErrors, NameTheFileThatWasCutShort) {
  auto name = (fs::temp_directory_path() / "braid_cut_short_XXXXXX").string();
  const int fd = ::mkstemp(name.data());
  ::close(fd);
  write_file(name, std::string(3 << 20, 'x'));
  const MappedFile file(name);
  const volatile auto* const last = &file.bytes().back();
  (void)*last;
  EXPECT_EXIT(
      {
        explain_bus_errors();
        fs::resize_file(name, 1000);
        (void)*last;
      },
      testing::ExitedWithCode(kFailed),
      testing::HasSubstr("braid: " + name + " was cut short while it was in use"));
  fs::remove(name);
}

TEST(BusErrors, OfNoFileStayWhatTheyAre) {
  EXPECT_EXIT(
      {
        explain_bus_errors();
        ::raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), testing::_);
}

}  // namespace braid::bus_errors_test
