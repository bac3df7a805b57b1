// What the engine warns of reaches everyone who asked, once.
#include <gmock/gmock.h>

#include "service_jobs.h"
#include "test_server.h"

namespace braid::serve::warnings_test {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const json kBoth = {"the guidance is not used", "the prompt's end is ignored"};
const std::string kWish = R"({"prompt": "long", "guidance": 0, "size": "16x16", "steps": 1)";

// The first is found before a picture is drawn, and again while it is; the second only then.
TEST(Warnings, ReachTheAnswerAlsoOfWhatHappensWhileItIsDrawn) {
  FakeEngine engine;
  const Server server(engine);
  EXPECT_EQ(json_of(server.ask("POST /v1/images/generations", "", kWish + "}"))["warnings"], kBoth);
  const auto stream = server.ask("POST /v1/images/generations", "", kWish + R"(, "stream": true})");
  const auto completed = stream.find("event: image_generation.completed");
  ASSERT_NE(completed, stream.npos);
  EXPECT_NE(stream.find("\"warnings\":" + kBoth.dump(), completed), stream.npos);
  EXPECT_THAT(stream, Not(HasSubstr("event: warning"))) << "clients take it for a picture";
  const auto web_ui = server.ask("POST /sdapi/v1/txt2img", "",
                                 R"({"prompt": "long", "width": 16, "height": 16, "steps": 1})");
  EXPECT_EQ(json_of(web_ui)["warnings"], json({"the prompt's end is ignored"}));
  const auto none = server.ask("POST /v1/images/generations", "", R"({"prompt": "a"})");
  EXPECT_FALSE(json_of(none).contains("warnings"));
}

TEST(Warnings, ReachTheJobAndItsReaders) {
  FakeEngine engine;
  const Server server(engine);
  const auto accepted = json_of(server.ask("POST /v1/jobs", "", kWish + "}"));
  EXPECT_EQ(accepted["warnings"][0], "the guidance is not used");
  const auto path = "GET /v1/jobs/" + accepted["id"].get<std::string>();
  const auto events = server.ask(path + "/events");
  for (const auto& sentence : kBoth)
    EXPECT_THAT(events, HasSubstr("event: warning\ndata: {\"message\":" + sentence.dump() + "}"));
  EXPECT_EQ(json_of(server.ask(path))["warnings"], kBoth);
}

// What is opaque comes first: it is laid on nothing.
TEST(Warnings, OfPicturesThatAreLaidOnWhiteAreGivenOnce) {
  FakeEngine engine;
  auto backend = engine.backend();
  backend.generate = [](const Request& request, const Hooks& hooks) {
    for (int i = 0; i < request.num_images; ++i) {
      Picture picture{.width = 2, .height = 2, .rgb = std::vector<std::uint8_t>(12), .prompt = "a"};
      if (i > 0) picture.alpha = {0, 0, 255, 255};
      hooks.picture(picture);
    }
  };
  Service service([&](const Hooks&) { return std::vector<Backend>{backend}; }, {});
  start(service);
  auto order = order_of("a", 3);
  order.form.format = FileForm::Format::kJpeg;
  const auto job = service.submit(std::move(order));
  EXPECT_EQ(wait_for_end(*job), JobState::kDone);
  EXPECT_THAT(job->status().warnings, ElementsAre(std::string(kLaidOnWhite)));
}

TEST(Warnings, OfLoadingReachTheLog) {
  FakeEngine engine;
  std::vector<std::string> heard;
  Service service(engine.load(),
                  {.on_warning = [&](const std::string& sentence) { heard.push_back(sentence); }});
  start(service);
  EXPECT_THAT(heard, ElementsAre("a file is left over"));
}

}  // namespace braid::serve::warnings_test
