#include "base/loaded_libraries.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <filesystem>

namespace braid::loaded_libraries_test {

namespace fs = std::filesystem;
using testing::HasSubstr, testing::IsEmpty, testing::SizeIs;

TEST(LoadedLibraries, AreFoundByHowTheirNamesBegin) {
  EXPECT_THAT(loaded_libraries("libc.so"), SizeIs(1));
  EXPECT_THAT(loaded_libraries("ibc.so"), IsEmpty());
  EXPECT_THAT(loaded_libraries("libcudart"), IsEmpty());
}

// A toolkit's runtime beside LibTorch's: any library serves, under its name.
TEST(LoadedLibraries, TwoRuntimesAreNamed) {
  EXPECT_EQ(why_runtimes_clash(), "");
  const auto any = loaded_libraries("libm.so");
  ASSERT_THAT(any, SizeIs(1));
  const fs::path folder = fs::path(testing::TempDir()) / "runtimes";
  std::vector<fs::path> files;
  for (const auto* const name : {"libcudart-1234.so.13", "libcudart.so.13"}) {
    fs::create_directories(folder);
    files.push_back(folder / name);
    fs::copy_file(any.front(), files.back(), fs::copy_options::overwrite_existing);
    ASSERT_NE(::dlopen(files.back().c_str(), RTLD_NOW | RTLD_LOCAL), nullptr) << ::dlerror();
    // once more, under another name for the same file
    fs::remove(folder / "libcudart.so");
    fs::create_symlink(files.back(), folder / "libcudart.so");
    ASSERT_NE(::dlopen((folder / "libcudart.so").c_str(), RTLD_NOW | RTLD_LOCAL), nullptr);
    const bool is_one = files.size() == 1;
    EXPECT_EQ(why_runtimes_clash().empty(), is_one);
  }
  const auto sentence = why_runtimes_clash();
  for (const auto& file : files) EXPECT_THAT(sentence, HasSubstr(fs::canonical(file).string()));
  EXPECT_THAT(sentence, HasSubstr("the runtime libcudart is loaded 2 times"));
  fs::remove_all(folder);
}

}  // namespace braid::loaded_libraries_test
