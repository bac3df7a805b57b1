// The mark "--" that ends the flags of a command.
#include "app/flags/flag_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "message_of.h"

namespace braid::flag_reader_test {

using testing::HasSubstr;

CommandLine parse(std::vector<const char*> line) {
  line.insert(line.begin(), "braid");
  return parse_command_line(int(line.size()), line.data());
}

std::string refusal_of(const std::vector<const char*>& line) {
  return message_of([&] { (void)parse(line); });
}

std::string shown_by(const std::vector<const char*>& line) {
  return std::get<ShowText>(parse(line)).text;
}

TEST(Flags, StandBeforeTheMarkThatEndsThem) {
  const auto* const late = "unexpected argument '--size': flags stand before --";
  EXPECT_EQ(refusal_of({"generate", "a", "--", "--size", "64x64"}), late);
  EXPECT_EQ(refusal_of({"generate", "--", "a", "--size", "64x64"}), late);
  EXPECT_EQ(refusal_of({"plan", "--", "--nonsense"}),
            "unexpected argument '--nonsense': flags stand before --");
  EXPECT_THAT(refusal_of({"generate", "a", "--", "b"}), HasSubstr("goes in quotes"));
  EXPECT_THAT(refusal_of({"--nonsense", "generate", "a"}), HasSubstr("a command comes first"));
}

// They would end the command with exit code 0, and nothing would be drawn.
TEST(Flags, OfTheProgramAreRefusedAfterTheMark) {
  for (const auto* const flag : {"--version", "-V", "--help", "-h", "-hV", "--help=1"}) {
    const auto late = text_of("unexpected argument '", flag, "': flags stand before --");
    EXPECT_EQ(refusal_of({"generate", "a", "--", flag}), late);
    EXPECT_EQ(refusal_of({"generate", "--", "a", flag}), late);
    EXPECT_EQ(refusal_of({"generate", "a", "++", flag}), late);
    EXPECT_EQ(refusal_of({"serve", "--", flag}), late);
    EXPECT_EQ(std::get<GenerateFlags>(parse({"generate", "--", flag})).prompt, flag);
  }
  EXPECT_THAT(refusal_of({"generate", "a", "--", "b", "--version"}), HasSubstr("goes in quotes"));
  EXPECT_THAT(refusal_of({"generate", "a", "--", "--size", "64x64", "-V"}), HasSubstr("'--size'"));
}

TEST(Flags, BeforeTheMarkAskForHelpAndVersion) {
  const auto help = shown_by({"generate", "--help"});
  EXPECT_THAT(help, HasSubstr("--negative-prompt"));
  EXPECT_EQ(shown_by({"generate", "a", "--help", "--", "--version"}), help);
  EXPECT_EQ(shown_by({"help", "generate", "--", "--version"}), help);
  EXPECT_EQ(shown_by({"generate", "a", "--prompt-2", "--", "--help"}), help);
  EXPECT_EQ(shown_by({"--version", "generate", "a"}), shown_by({"--version"}));
  EXPECT_EQ(shown_by({"--help"}), shown_by({"help"}));
}

}  // namespace braid::flag_reader_test
