// Files of latents whose names end in a number, and numbers of pictures behind them.
#include <gtest/gtest.h>

#include "app/flags/flags.h"
#include "base/error.h"
#include "base/file.h"
#include "temporary_folder.h"

namespace braid::latents_flag_test {

GenerateFlags with_latents(const std::string& text) {
  const std::vector<const char*> argv = {"braid", "generate", "a", "--latents", text.c_str()};
  return std::get<GenerateFlags>(parse_command_line(int(argv.size()), argv.data()));
}

TEST(LatentsFlag, TakesTheNumberOfAPicture) {
  EXPECT_EQ(with_latents("d.safetensors=2").latents, "d.safetensors");
  EXPECT_EQ(with_latents("d.safetensors=2").latents_picture, 2);
  EXPECT_THROW((void)with_latents("d.safetensors=0"), InputError);
  const TemporaryFolder folder;
  const auto file = (folder / "d=2").string();
  write_file(file, "there");
  for (const auto& whole : {file, std::string("d.safetensors"), std::string("a=b"),
                            std::string("a="), std::string("=2")}) {
    EXPECT_EQ(with_latents(whole).latents, whole);
    EXPECT_EQ(with_latents(whole).latents_picture, std::nullopt);
  }
}

}  // namespace braid::latents_flag_test
