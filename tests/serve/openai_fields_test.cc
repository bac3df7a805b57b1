// What OpenAI publishes for its images API beyond what means something here.
#include <gmock/gmock.h>

#include "base/base64.h"
#include "grey_png.h"
#include "image/picture_file.h"
#include "test_server.h"

namespace braid::serve::openai_fields_test {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;

class OpenAiFields : public testing::Test {
 protected:
  static std::string ask(const Server& server, const std::string& path, json wish) {
    wish.update({{"prompt", wish.value("prompt", "a")}, {"size", "16x16"}, {"steps", 1}});
    return server.ask("POST " + path, "", wish.dump());
  }
  std::string generate(const json& wish) const {
    return ask(server_, "/v1/images/generations", wish);
  }
  std::string edit(const json& wish) const { return ask(server_, "/v1/images/edits", wish); }

  FakeEngine engine_;
  Server server_{engine_};
  const std::string image_ = "data:image/png;base64," + base64(grey_png(32, 16, 1));
};

// openai 3.57, image_generate_params.py
TEST_F(OpenAiFields, ThatMeanNothingHereAreAcceptedWithAWarning) {
  for (const auto& [field, value] :
       std::vector<std::pair<std::string, json>>{{"moderation", "low"},
                                                 {"style", "vivid"},
                                                 {"input_fidelity", "high"},
                                                 {"complexity", "high"},
                                                 {"frame_count", 9},
                                                 {"frame_duration_ms", 200},
                                                 {"svg", {{"model", "x"}}},
                                                 {"prompt_rewriter", "auto"}}) {
    const auto answer = generate({{field, value}});
    ASSERT_EQ(status_of(answer), 200) << answer;
    EXPECT_EQ(json_of(answer)["warnings"],
              json({"'" + field + "' is not used: it means nothing here"}));
    EXPECT_FALSE(json_of(generate({{field, nullptr}})).contains("warnings")) << field;
  }
}

// Clients send both with every request.
TEST_F(OpenAiFields, WithoutEffectAreToldOf) {
  EXPECT_EQ(json_of(generate({{"partial_images", 2}}))["warnings"],
            json({"'partial_images' is not used: only a 'stream' has them"}));
  EXPECT_EQ(json_of(generate({{"output_compression", 50}}))["warnings"],
            json({"'output_compression' is not used: a PNG loses nothing, JPEG and WebP have it"}));
  EXPECT_EQ(json_of(ask(server_, "/v1/jobs", {{"output_compression", 50}}))["warnings"].size(), 1u);
  for (const json& wish : {json{{"partial_images", 0}, {"output_compression", 100}},
                           json{{"output_compression", 50}, {"output_format", "webp"}}})
    EXPECT_FALSE(json_of(generate(wish)).contains("warnings")) << wish;
  EXPECT_THAT(generate({{"partial_images", 2}, {"stream", true}}),
              testing::Not(HasSubstr("warnings")));
}

TEST_F(OpenAiFields, MayNameTheSampling) {
  const auto answer = generate({{"sampler", "er_sde"}, {"schedule", "beta"}, {"shift", 3}});
  ASSERT_EQ(status_of(answer), 200) << answer;
  EXPECT_EQ(engine_.last().sampling.sampler, Sampler::kErSde);
  EXPECT_EQ(engine_.last().sampling.schedule, SigmaSchedule::kBeta);
  EXPECT_EQ(engine_.last().sampling.shift, 3);
  ASSERT_EQ(status_of(generate({{"sampler_name", "Heun"}, {"sigmas", {1, 0.5}}})), 200);
  EXPECT_EQ(engine_.last().sampling.sampler, Sampler::kHeun);
  EXPECT_EQ(engine_.last().sampling.sigmas, (std::vector<double>{1, 0.5}));
  ASSERT_EQ(status_of(generate({{"scheduler", "simple"}, {"base_sigmas", json::array()}})), 200);
  EXPECT_EQ(engine_.last().sampling.schedule, SigmaSchedule::kSimple);
  EXPECT_THAT(generate({{"sampler", "ddim"}}),
              HasSubstr("'sampler' should be one of euler, euler_ancestral, heun, dpm_2, dpmpp_2m, "
                        "res_multistep, er_sde, lcm, it is 'ddim'"));
  EXPECT_THAT(generate({{"scheduler", "turbo"}}),
              HasSubstr("'scheduler' should be one of model, simple, beta, karras, exponential"));
  EXPECT_EQ(status_of(generate({{"sigmas", "1,0.5"}})), 400);
}

TEST_F(OpenAiFields, HaveAllPublishedQualities) {
  for (const auto* const quality :
       {"auto", "low", "medium", "high", "xhigh", "max", "standard", "hd"})
    EXPECT_EQ(status_of(generate({{"quality", quality}})), 200) << quality;
  EXPECT_EQ(status_of(generate({{"quality", "best"}})), 400);
}

// openai 3.57, image_gen_partial_image_event.py: "The quality setting for the requested image."
TEST_F(OpenAiFields, OfStreamsSayTheQualityThatWasAskedFor) {
  for (const auto& [wish, quality] :
       std::vector<std::pair<json, std::string>>{{{{"quality", "high"}}, "high"},
                                                 {{{"quality", "low"}}, "low"},
                                                 {json::object(), "auto"}}) {
    json stream = {{"stream", true}, {"partial_images", 1}};
    stream.update(wish);
    const auto answer = generate(stream);
    const auto said = "\"quality\":\"" + quality + "\"";
    const auto partial = answer.find("event: image_generation.partial_image"),
               whole = answer.find("event: image_generation.completed");
    ASSERT_LT(partial, whole) << answer;
    EXPECT_LT(answer.find(said, partial), whole);
    EXPECT_NE(answer.find(said, whole), answer.npos) << quality;
  }
}

TEST_F(OpenAiFields, ThatAskForAnotherPictureAreRefused) {
  for (const auto& [field, value] : std::vector<std::pair<std::string, json>>{
           {"background", "transparent"}, {"output_format", "gif"}, {"output_format", "svg"}})
    EXPECT_EQ(json_of(generate({{field, value}}))["error"]["param"], field);
  const auto answer = edit({{"image", image_}, {"markup", image_}});
  EXPECT_EQ(json_of(answer)["error"]["param"], "markup");
  EXPECT_THAT(answer, HasSubstr("paint a 'mask'"));
  const auto drawn = generate({{"markup", image_}});
  EXPECT_THAT(drawn, HasSubstr("paint a 'mask'")) << "whatever becomes of unknown fields";
}

// "A non-empty value takes precedence over the deprecated `user` parameter."
TEST_F(OpenAiFields, TakeTurnsBySafetyIdentifier) {
  const auto jobs_of = [&](const std::string& user) {
    return json_of(server_.ask("GET /v1/jobs?user=" + user))["jobs"].size();
  };
  ask(server_, "/v1/jobs", {{"safety_identifier", "me"}, {"user", "old"}});
  ask(server_, "/v1/jobs", {{"safety_identifier", ""}, {"user", "old"}});
  EXPECT_EQ(status_of(generate({{"safety_identifier", "me"}})), 200);
  EXPECT_EQ(jobs_of("me"), 1u);
  EXPECT_EQ(jobs_of("old"), 1u);
}

// openai 3.57, image_input_reference_param.py
TEST_F(OpenAiFields, OfEditsMayBeJson) {
  const json object = {{"image_url", image_}};
  const auto references = [&](const json& wish) {
    const auto answer = edit(wish);
    EXPECT_EQ(status_of(answer), 200) << answer;
    return engine_.last().pictures.references.size();
  };
  EXPECT_EQ(references({{"images", {object, object}}}), 2u);
  EXPECT_EQ(references({{"images", {object}}}), 1u);
  EXPECT_EQ(references({{"images", {image_}}}), 1u);
  EXPECT_EQ(references({{"image", object}}), 1u);
  EXPECT_EQ(references({{"image_url", image_}}), 1u);
  EXPECT_EQ(references({{"images", {{{"image_url", {{"url", image_}}}}}}}), 1u) << "as in chats";
  EXPECT_EQ(references({{"images", {object}}, {"mask", nullptr}}), 1u);
  const auto masked = edit({{"images", {object}}, {"mask", object}});
  EXPECT_EQ(status_of(masked), 200) << masked;
  EXPECT_TRUE(engine_.last().pictures.mask);
}

TEST_F(OpenAiFields, AreNeverFetched) {
  const auto expect_refused = [&](const json& wish, const char* param, const char* words) {
    const auto answer = edit(wish);
    EXPECT_EQ(status_of(answer), 400) << answer;
    EXPECT_EQ(json_of(answer)["error"]["param"], param);
    EXPECT_THAT(answer, HasSubstr(words));
  };
  const json address = {{"image_url", "https://example.org/a.png"}};
  expect_refused({{"images", {address}}}, "images", "fetches no addresses");
  expect_refused({{"image", "file:///etc/passwd"}}, "image", "fetches no addresses");
  expect_refused({{"image_url", "http://localhost/"}}, "image_url", "fetches no addresses");
  expect_refused({{"images", {{{"file_id", "file-1"}}}}}, "images", "no stored files");
  expect_refused({{"images", {{{"image", image_}}}}}, "images", "'image_url', it is object");
  expect_refused({{"images", json::array()}}, "images", "it is empty");
  expect_refused({{"images", nullptr}}, "image", "there is no 'image'");
  expect_refused({{"image", "data:image/svg+xml,<svg/>"}}, "image", "a data URL in base64");
}

TEST_F(OpenAiFields, ThatNobodyPublishesAreRefusedOrWarnedOf) {
  const json typo = {{"promt", "b"}, {"lora", {{{"name", "ink"}, {"weight", 1}}}}};
  EXPECT_EQ(json_of(generate({{"promt", "b"}}))["error"]["code"], "unknown_parameter");
  const Server lenient(engine_, {}, {}, {}, [](ApiContext& context) {
    context.unknown_fields = UnknownFields::kWarnedOf;
  });
  const auto answer = ask(lenient, "/v1/images/generations", typo);
  ASSERT_EQ(status_of(answer), 200) << answer;
  const json wanted = {"there is no field 'weight': it is not used",
                       "there is no field 'promt': it is not used"};
  EXPECT_EQ(json_of(answer)["warnings"], wanted);
  const std::string form =
      "--xx\r\ncontent-disposition: form-data; name=\"prompt\"\r\n\r\na\r\n"
      "--xx\r\ncontent-disposition: form-data; name=\"b\"; filename=\"c\"\r\n\r\nd\r\n--xx--\r\n";
  const auto job =
      lenient.ask("POST /v1/jobs", "content-type: multipart/form-data; boundary=xx\r\n", form);
  EXPECT_EQ(status_of(job), 202) << job;
  EXPECT_EQ(json_of(job)["warnings"], json({"there is no field 'b' for a file: it is not used"}));
}

// "The maximum length is 32000 characters."
TEST_F(OpenAiFields, BoundPromptsInCharacters) {
  std::string stars;
  for (int i = 0; i < 32'000; ++i) stars += "\u2605";
  EXPECT_EQ(status_of(generate({{"prompt", stars}})), 200);
  const auto answer = generate({{"prompt", stars + "a"}});
  EXPECT_EQ(status_of(answer), 400);
  EXPECT_THAT(answer, HasSubstr("at most 32000 characters, it has 32001"));
}

TEST_F(OpenAiFields, OfModelsThatClientsHaveWiredInMeanTheFirst) {
  for (const auto* const name : {"dall-e-2", "dall-e-3", "gpt-image-1", "gpt-image-1-mini",
                                 "gpt-image-2.5-sunburst-2026-09-08", "chatgpt-image-latest"}) {
    const auto answer = generate({{"model", name}});
    ASSERT_EQ(status_of(answer), 200) << answer;
    EXPECT_EQ(json_of(answer)["warnings"],
              json({std::string("the model is 'demo': there is no '") + name + "' here"}));
    EXPECT_EQ(json_of(server_.ask(std::string("GET /v1/models/") + name))["id"], "demo");
  }
  EXPECT_EQ(status_of(generate({{"model", "gpt-4o"}})), 404);
}

// OpenAI's reference: `response_format` is `url` by default for DALL-E, and is not for the others.
TEST_F(OpenAiFields, OfDallEHaveItsDefaultOfTheForm) {
  const auto form_of = [&](const json& wish) {
    const auto answer = json_of(generate(wish));
    return answer["data"][0].contains("url") ? "url" : "b64_json";
  };
  for (const auto* const name : {"dall-e-2", "dall-e-3"}) {
    EXPECT_STREQ(form_of({{"model", name}}), "url") << name;
    EXPECT_STREQ(form_of({{"model", name}, {"response_format", nullptr}}), "url") << name;
    EXPECT_STREQ(form_of({{"model", name}, {"response_format", "b64_json"}}), "b64_json") << name;
    EXPECT_TRUE(json_of(edit({{"model", name}, {"image", image_}}))["data"][0].contains("url"));
    const auto stream = generate({{"model", name}, {"stream", true}});
    EXPECT_THAT(stream, HasSubstr("b64_json"));
    EXPECT_THAT(stream, testing::Not(HasSubstr("response_format"))) << "it was not asked for";
  }
  for (const auto* const name : {"demo", "gpt-image-1"})
    EXPECT_STREQ(form_of({{"model", name}}), "b64_json") << name;
  FakeEngine engine([](Backend& backend) { backend.names = {"dall-e-3"}; });
  const Server server(engine);
  const auto own = json_of(ask(server, "/v1/images/generations", {{"model", "dall-e-3"}}));
  EXPECT_TRUE(own["data"][0].contains("b64_json")) << "the operator's model";
}

TEST_F(OpenAiFields, OfAStreamSayThatItHasNoUrls) {
  const auto answer = generate({{"stream", true}, {"response_format", "url"}});
  EXPECT_THAT(answer,
              HasSubstr("'response_format' is not used: a 'stream' has its pictures in it"));
  EXPECT_THAT(answer, HasSubstr("b64_json"));
  EXPECT_THAT(generate({{"stream", true}, {"response_format", "b64_json"}}),
              testing::Not(HasSubstr("warnings")));
}

TEST(ServedNames, AreListedAndTakenAndAliasesAreTaken) {
  FakeEngine engine;
  engine.adapt = [](Backend& backend) {
    backend.names = {"gpt-image-1", "second"};
    backend.aliases = {"org/demo"};
  };
  const Server server(engine);
  std::vector<std::string> ids;
  const auto models = json_of(server.ask("GET /v1/models"));
  for (const auto& model : models["data"]) ids.push_back(model["id"]);
  EXPECT_THAT(ids, testing::ElementsAre("demo", "gpt-image-1", "second"));
  for (const std::string name : {"demo", "gpt-image-1", "second", "org/demo"}) {
    const json wish = {{"prompt", "a"}, {"model", name}, {"size", "16x16"}};
    const auto answer = server.ask("POST /v1/images/generations", "", wish.dump());
    EXPECT_EQ(status_of(answer), 200) << answer;
    EXPECT_FALSE(json_of(answer).contains("warnings")) << name;
    EXPECT_EQ(status_of(server.ask("GET /v1/models/" + name)), 200) << name;
  }
  EXPECT_EQ(json_of(server.ask("GET /v1/models/second"))["id"], "second");
  const json web_ui = {{"prompt", "a"}, {"override_settings", {{"sd_model_checkpoint", "second"}}}};
  EXPECT_EQ(status_of(server.ask("POST /sdapi/v1/txt2img", "", web_ui.dump())), 200);
}

TEST(Limits, StandInTheAnswer) {
  FakeEngine engine;
  const Server server(engine, {}, {.max_body_bytes = 1000}, {},
                      [](ApiContext& context) { context.bounds.max_input_pixels = 100; });
  const auto answer = server.ask("POST /v1/jobs", "", std::string(1001, ' '));
  EXPECT_EQ(status_of(answer), 413);
  for (const auto* const words : {"1000 bytes", "--max-body", "100 pixels", "--max-input-pixels"})
    EXPECT_THAT(answer, HasSubstr(words));
  EXPECT_THAT(answer, HasSubstr("x-request-id")) << "as of every request";
  const json wish = {{"prompt", "a"}, {"init", base64(grey_png(11, 10, 0))}};
  const auto large = server.ask("POST /v1/jobs", "", wish.dump());
  EXPECT_EQ(status_of(large), 413) << large;
  EXPECT_THAT(large, HasSubstr("11x10 pixels"));
  EXPECT_THAT(large, HasSubstr("--max-input-pixels"));
}

// Their previews alternate, each step has both.
TEST(OpenAiStreams, CountPartialPicturesOfEachThatIsDrawnWithOthers) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  engine.num_together = 2;
  const Server server(engine);
  RawClient client(server.port());
  client.send(Server::request_text("POST /v1/images/generations", "connection: close\r\n",
                                   R"({"prompt": "a", "n": 2, "size": "16x16", "steps": 6,)"
                                   R"( "stream": true, "partial_images": 2})"));
  for (int step = 1; step <= 6; ++step) {
    engine.release(1);
    ASSERT_TRUE(client.read_until(text_of("\"step\":", step, ",")));
  }
  const auto answer = client.read_all();
  const auto count = [&](const std::string& word) {
    int found = 0;
    for (auto at = answer.find(word); at != answer.npos; at = answer.find(word, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("event: image_generation.completed"), 2);
  EXPECT_EQ(count("\"partial_image_index\":0"), 2);
  EXPECT_EQ(count("\"partial_image_index\":1"), 2);
}

}  // namespace braid::serve::openai_fields_test
