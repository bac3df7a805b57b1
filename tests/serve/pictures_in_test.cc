// Pictures sent by clients: in forms, as base64, and in each API's terms.
#include <gmock/gmock.h>

#include "base/base64.h"
#include "base/file.h"
#include "base/sha256.h"
#include "grey_png.h"
#include "image/picture_file.h"
#include "pictures.h"
#include "serve/body/fields.h"
#include "test_server.h"
#include "wait_until.h"

namespace braid::serve::pictures_in_test {

using testing::HasSubstr;

// A grey PNG that claims sides of so many pixels, with valid checksums and hardly any data.
std::string bomb(int side) {
  auto png = grey_png(16, 16, 0);
  const auto high = char(side >> 8), low = char(side);
  const std::string head = {0, 0, high, low, 0, 0, high, low, 1, 0, 0, 0, 0};
  png.replace(16, 13, head);
  std::uint32_t crc = 0xffffffff;  // of "IHDR" and its contents (PNG, annex D)
  for (std::size_t i = 12; i < 29; ++i) {
    crc ^= static_cast<unsigned char>(png[i]);
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
  }
  crc = ~crc;
  for (int i = 0; i < 4; ++i) png[std::size_t(29 + i)] = char(crc >> (24 - 8 * i));
  return png;
}

struct FormPart {
  std::string name, bytes, file = {};
};
std::string form(const std::vector<FormPart>& parts) {
  std::string body;
  for (const auto& part : parts) {
    body += "--xx\r\nContent-Disposition: form-data; name=\"" + part.name + "\"";
    if (!part.file.empty()) body += "; filename=\"" + part.file + "\"";
    body += "\r\n\r\n" + part.bytes + "\r\n";
  }
  return body + "--xx--\r\n";
}

class PicturesIn : public testing::Test {
 protected:
  std::string post_form(const std::string& path, const std::vector<FormPart>& parts) const {
    return server_.ask("POST " + path, "content-type: multipart/form-data; boundary=xx\r\n",
                       form(parts));
  }
  std::string post(const std::string& path, const nlohmann::json& json) const {
    return server_.ask("POST " + path, "", json.dump());
  }
  void expect_refused(const std::string& answer, const std::string& param, const std::string& words,
                      int status = 400) const {
    EXPECT_EQ(status_of(answer), status) << answer;
    EXPECT_EQ(json_of(answer)["error"]["param"], param) << answer;
    EXPECT_THAT(answer, HasSubstr(words));
  }

  FakeEngine engine_;
  Server server_{engine_};
};

TEST_F(PicturesIn, OfOneEditAreWhatItLooksAt) {
  const auto answer = post_form("/v1/images/edits", {{"image", grey_png(32, 16, 1), "in.png"},
                                                     {"prompt", "3"},
                                                     {"n", "2"},
                                                     {"seed", "7"},
                                                     {"steps", "2"}});
  ASSERT_EQ(status_of(answer), 200) << answer;
  EXPECT_EQ(json_of(answer)["data"].size(), 2u);
  const auto request = engine_.last();
  EXPECT_EQ(request.prompts.front(), "3") << "a prompt that looks like a number stays a text";
  EXPECT_EQ(request.seed, 7u);
  ASSERT_EQ(request.pictures.references.size(), 1u);
  EXPECT_EQ(request.pictures.references.front().width, 32);
  const auto png = bytes_of_base64(json_of(answer)["data"][0]["b64_json"].get<std::string>(), "");
  EXPECT_THAT(read_png_text(png, ""), testing::Contains(testing::Pair("reference", "in.png")));
}

TEST_F(PicturesIn, OfAnEditWithAMaskAreWhatItStartsFrom) {
  ASSERT_EQ(status_of(post_form("/v1/images/edits", {{"image[]", grey_png(16, 16, 1), "a.png"},
                                                     {"image[]", grey_png(8, 8, 2), "b.png"},
                                                     {"mask", grey_png(16, 16, 200), "m.png"},
                                                     {"prompt", "a"},
                                                     {"strength", "0.5"}})),
            200);
  const auto in = engine_.last().pictures;
  ASSERT_TRUE(in.init && in.mask);
  EXPECT_EQ(in.init->rgb.front(), 1);
  EXPECT_EQ(in.mask->rgb.front(), 200) << "no holes: its colours count";
  EXPECT_EQ(in.strength, 0.5);
  ASSERT_EQ(in.references.size(), 1u);
  EXPECT_EQ(in.references.front().rgb.front(), 2);
}

// Soft edges stay soft, as in the program.
TEST_F(PicturesIn, OfAnEditHaveTheHolesThatTheProgramSees) {
  for (const auto* const name : {"clear.png", "clear.webp"}) {
    const auto mask =
        read_file(std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/pictures" / name);
    ASSERT_EQ(status_of(post_form("/v1/images/edits", {{"image", grey_png(32, 16, 1), "a.png"},
                                                       {"mask", mask, name},
                                                       {"prompt", "a"},
                                                       {"strength", "0.5"}})),
              200);
    const auto in = engine_.last().pictures;
    ASSERT_TRUE(in.mask) << name;
    EXPECT_EQ(in.mask->rgb, decode_transparency(mask, name)->rgb) << name;
  }
}

TEST_F(PicturesIn, MayBeStreamed) {
  const auto answer = post_form("/v1/images/edits", {{"image", grey_png(16, 16, 1), "a.png"},
                                                     {"prompt", "a"},
                                                     {"stream", "true"},
                                                     {"partial_images", "1"}});
  EXPECT_THAT(answer, HasSubstr("event: image_edit.partial_image"));
  EXPECT_THAT(answer, HasSubstr("event: image_edit.completed"));
}

TEST_F(PicturesIn, HaveAStrengthBetweenNothingAndAll) {
  const auto image = base64(grey_png(16, 16, 1));
  for (const double strength : {-0.1, 1.5}) {
    const std::string words = text_of("should lie between 0 and 1, it is ", strength);
    expect_refused(post("/v1/jobs", {{"prompt", "a"}, {"init", image}, {"strength", strength}}),
                   "strength", words);
    expect_refused(
        post("/v1/images/edits", {{"prompt", "a"}, {"image", image}, {"strength", strength}}),
        "strength", words);
    expect_refused(
        post("/sdapi/v1/img2img",
             {{"prompt", "a"}, {"init_images", {image}}, {"denoising_strength", strength}}),
        "denoising_strength", words);
  }
  expect_refused(post("/v1/jobs", {{"prompt", "a"}, {"strength", 0.5}}), "strength",
                 "should come with an 'init'");
}

TEST_F(PicturesIn, OfJobsComeInJsonAndInForms) {
  const auto init = grey_png(16, 16, 1), mask = grey_png(16, 16, 255), look = grey_png(8, 8, 3);
  const auto in_json = post("/v1/jobs", {{"prompt", "a"},
                                         {"init", "data:image/png;base64," + base64(init)},
                                         {"mask", base64(mask)},
                                         {"reference", {base64(look)}},
                                         {"strength", 0.25}});
  ASSERT_EQ(status_of(in_json), 202) << in_json;
  const auto files = json_of(in_json)["pictures_in"];
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0]["sha256"], sha256_hex(init));
  EXPECT_EQ(files[2]["name"], "reference");
  engine_.wait_until_called(1);
  const auto first = engine_.last().pictures;
  EXPECT_EQ(first.strength, 0.25);
  ASSERT_EQ(status_of(post_form("/v1/jobs", {{"prompt", "a"},
                                             {"init", init, "a"},
                                             {"mask", mask, "b"},
                                             {"reference[]", look, "c"},
                                             {"strength", "0.25"}})),
            202);
  engine_.wait_until_called(2);
  const auto second = engine_.last().pictures;
  EXPECT_EQ(second.init->rgb, first.init->rgb);
  EXPECT_EQ(second.mask->rgb, first.mask->rgb);
  EXPECT_EQ(second.references.front().rgb, first.references.front().rgb);
  EXPECT_EQ(second.strength, first.strength);
}

TEST_F(PicturesIn, OfTheWebUisClients) {
  const auto init = base64(grey_png(16, 16, 1)), mask = base64(grey_png(16, 16, 255));
  const auto answer = post("/sdapi/v1/img2img", {{"prompt", "a"},
                                                 {"init_images", {init}},
                                                 {"mask", mask},
                                                 {"inpainting_mask_invert", 1},
                                                 {"resize_mode", 0}});
  ASSERT_EQ(status_of(answer), 200) << answer;
  const auto in = engine_.last().pictures;
  EXPECT_EQ(in.strength, 0.75);
  EXPECT_EQ(in.mask->rgb.front(), 0) << "inverted";
  expect_refused(post("/sdapi/v1/img2img", {{"prompt", "a"}}), "init_images", "init_images");
}

TEST_F(PicturesIn, AreRefusedByTheirField) {
  const auto one = base64(grey_png(16, 16, 1));
  expect_refused(post("/v1/jobs", {{"prompt", "a"}, {"init", 3}}), "init", "base64");
  expect_refused(post("/v1/jobs", {{"prompt", "a"}, {"init", "?"}}), "init", "base64");
  expect_refused(post("/v1/jobs", {{"prompt", "a"}, {"init", "AAAA"}}), "init",
                 "the init should be a PNG, JPEG or WebP picture");
  expect_refused(post("/v1/jobs", {{"prompt", "a"}, {"init", {one, one}}}), "init", "one picture");
  expect_refused(post("/v1/jobs", {{"prompt", "a"}, {"image", one}}), "image", "no field");
  expect_refused(post_form("/v1/images/edits", {{"prompt", "a"}}), "image", "no 'image'");
  expect_refused(post_form("/v1/images/edits",
                           {{"prompt", "a"}, {"image", grey_png(8, 8, 1), "a"}, {"b", "", "c"}}),
                 "b", "no field 'b' for a file");
  expect_refused(post_form("/v1/jobs", {{"prompt", "a"}, {"prompt", "b"}}), "prompt", "twice");
  EXPECT_EQ(status_of(post_form("/v1/jobs", {{"prompt", "\xff"}})), 400);
  EXPECT_EQ(status_of(post_form("/v1/images/generations", {{"prompt", "a"}})), 415);
  const auto of_type = [&](const std::string& path) {
    return server_.ask("POST " + path, "content-type: application/x-www-form-urlencoded\r\n",
                       "a=b");
  };
  for (const std::string path : {"/v1/images/edits", "/v1/jobs"})
    EXPECT_THAT(of_type(path), HasSubstr("should be application/json or multipart/form-data, it"));
  EXPECT_THAT(of_type("/v1/images/generations"), HasSubstr("should be application/json, it is"));
}

// Another picture would be drawn.
TEST_F(PicturesIn, ThatAreEmptyAreRefused) {
  const auto one = base64(grey_png(16, 16, 1));
  const std::vector<std::string> holes = {one, ""};
  for (const nlohmann::json& none :
       {nlohmann::json(""), nlohmann::json::array(), nlohmann::json{""}, nlohmann::json(holes)}) {
    for (const std::string field : {"init", "mask", "reference", "control"}) {
      nlohmann::json wish = {{"prompt", "a"}, {"init", one}};
      wish[field] = none;
      expect_refused(post("/v1/jobs", wish), field, "'" + field + "' should be a picture, or left");
    }
    for (const std::string field : {"image", "images", "image_url", "mask"}) {
      nlohmann::json wish = {{"prompt", "a"}, {field == "image" ? "images" : "image", one}};
      wish[field] = none;
      expect_refused(post("/v1/images/edits", wish), field, "it is empty");
    }
  }
  const nlohmann::json absent = {{"prompt", "a"}, {"image", one}, {"mask", nullptr}};
  EXPECT_EQ(status_of(post("/v1/images/edits", absent)), 200);
  const nlohmann::json web_ui = {{"prompt", "a"}, {"init_images", {one}}, {"mask", ""}};
  EXPECT_EQ(status_of(post("/sdapi/v1/img2img", web_ui)), 200) << "as that web UI has it";
  EXPECT_FALSE(engine_.last().pictures.mask);
  for (const std::string field : {"image", "image[]", "image[1]", "mask", "images", "image_url"})
    expect_refused(
        post_form("/v1/images/edits",
                  {{"prompt", "a"}, {"image", grey_png(16, 16, 1), "a.png"}, {field, ""}}),
        field.substr(0, field.find('[')), "it is empty");
  for (const std::string field : {"init", "mask", "reference", "reference[]", "control"})
    expect_refused(post_form("/v1/jobs", {{"prompt", "a"}, {field, ""}}),
                   field.substr(0, field.find('[')), "it is empty");
}

TEST_F(PicturesIn, AreNotMoreThanTheModelLooksAt) {
  const auto one = base64(grey_png(16, 16, 1));
  const std::vector<std::string> four(4, one);
  expect_refused(post("/v1/images/edits", {{"prompt", "a"}, {"image", four}}), "image",
                 "this model takes 2 pictures as 'image', there are 4");
  expect_refused(post("/v1/images/edits", {{"prompt", "a"}, {"images", four}, {"mask", one}}),
                 "images", "this model takes 3 pictures as 'images', there are 4");
  expect_refused(post("/v1/jobs", {{"prompt", "a"}, {"reference", four}}), "reference",
                 "this model takes 2 pictures as 'reference', there are 4");
  expect_refused(post("/sdapi/v1/img2img", {{"prompt", "a"}, {"init_images", four}}), "init_images",
                 "this model takes 3 pictures");
  FakeEngine blind;
  blind.adapt = [](Backend& backend) { backend.info.pictures.most_references = 0; };
  const nlohmann::json job = {{"prompt", "a"}, {"reference", one}};
  expect_refused(Server(blind).ask("POST /v1/jobs", "", job.dump()), "reference",
                 "this model takes 0 pictures as 'reference', there is 1");
}

TEST_F(PicturesIn, ThatClaimToBeHugeAreRefusedFromTheirHeads) {
  expect_refused(post("/v1/jobs", {{"prompt", "a"}, {"init", base64(bomb(30000))}}), "init",
                 "30000x30000 pixels, at most 33554432 are read", 413);
  // Each is small enough, both together are not: that is found before the first is decoded.
  const auto large = base64(bomb(4096)), other = base64(bomb(5000));
  expect_refused(post("/v1/jobs", {{"prompt", "a"}, {"reference", {large, other}}}), "reference",
                 "5000x5000 pixels, at most 16777216 are read", 413);
}

TEST_F(PicturesIn, MakeNoLargerPictureThanThereMayBe) {
  const auto answer =
      post("/v1/jobs", {{"prompt", "a"}, {"init", base64(grey_png(4096, 2048, 0))}});
  ASSERT_EQ(status_of(answer), 202) << answer;
  EXPECT_EQ(json_of(answer)["request"]["width"], 2896);
  EXPECT_EQ(json_of(answer)["request"]["height"], 1440);
}

TEST(PicturesOfJobs, AreNotEvenReadWhereTheQueueIsFull) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  const Server server(engine, {}, {}, {.max_waiting_pictures = 1});
  server.ask("POST /v1/jobs", "", R"({"prompt": "a"})");
  engine.wait_until_called(1);
  server.ask("POST /v1/jobs", "", R"({"prompt": "a"})");
  const auto answer = server.ask("POST /v1/jobs", "", R"({"prompt": "a", "init": "AAAA"})");
  EXPECT_EQ(status_of(answer), 429) << answer;
  EXPECT_THAT(answer, HasSubstr("1 pictures wait"));
}

// Their bytes are counted from their heads.
TEST(PicturesOfJobs, AreNotDecodedWhereTheQueueHasNoRoomForThem) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  const Server server(engine, {}, {}, {.max_waiting_input_bytes = 100 * 100 * 3});
  server.ask("POST /v1/jobs", "", R"({"prompt": "a"})");
  engine.wait_until_called(1);
  const auto post = [&](const std::string& path, const std::string& field,
                        const std::string& bytes) {
    const nlohmann::json wish = {{"prompt", "a"}, {field, {base64(bytes)}}};
    return status_of(server.ask("POST " + path, "", wish.dump()));
  };
  const auto damaged = bomb(90);
  EXPECT_EQ(post("/v1/jobs", "init", damaged), 400) << "there is room for it";
  EXPECT_EQ(post("/v1/jobs", "init", grey_png(64, 64, 1)), 202);
  EXPECT_EQ(post("/v1/jobs", "init", damaged), 429);
  EXPECT_EQ(post("/v1/images/edits", "image", damaged), 429);
  EXPECT_EQ(post("/sdapi/v1/img2img", "init_images", damaged), 429);
}

using Clients = std::vector<std::unique_ptr<RawClient>>;
constexpr int kClients = 12;

// Clients bring pictures of 8 megapixels while a job runs.
Clients clients_with_large_pictures(Server& server, FakeEngine& engine) {
  server.ask("POST /v1/jobs", "", R"({"prompt": "a"})");
  engine.wait_until_called(1);
  const nlohmann::json large = {{"prompt", "a"}, {"init", base64(grey_png(4096, 2048, 0))}};
  Clients clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    clients.back()->send(Server::request_text("POST /v1/jobs", "", large.dump()));
  }
  EXPECT_TRUE(wait_until([&] { return server.service().status().waiting_pictures >= kClients; }));
  return clients;
}

TEST(PicturesOfJobs, KeepNobodyElseWaitingWhileTheyAreDecoded) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Server server(engine, {}, {}, {.max_waiting_pictures = kClients + 1});
  const auto clients = clients_with_large_pictures(server, engine);
  const nlohmann::json no_picture = {{"prompt", "a"}, {"init", std::string(100'000, 'A')}};
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(status_of(server.ask("POST /v1/jobs", "", no_picture.dump())), 400);
  EXPECT_EQ(status_of(server.ask("POST /v1/jobs", "", R"({"prompt": "a", "n": 2})")), 429);
  EXPECT_EQ(status_of(server.ask("GET /readyz")), 200);
  EXPECT_LT(server.service().status().waiting, kClients / 2) << "most are not decoded yet";
  for (const auto& client : clients) EXPECT_TRUE(client->read_until(" 202 "));
}

// A damaged picture is refused if it is decoded.
void send_damaged(RawClient& last, Server& server) {
  const nlohmann::json damaged = {{"prompt", "a"}, {"init", base64(bomb(90))}};
  last.send(Server::request_text("POST /v1/jobs", "", damaged.dump()));
  EXPECT_TRUE(wait_until([&] { return server.service().status().waiting_pictures > kClients; }));
}

TEST(PicturesOfJobs, AreStillDecodedWhileTheServerDrains) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Server server(engine);
  const auto clients = clients_with_large_pictures(server, engine);
  RawClient last(server.port());
  send_damaged(last, server);
  server.service().drain();
  EXPECT_TRUE(last.read_until(" 400 ")) << last.received();
  for (const auto& client : clients) EXPECT_TRUE(client->read_until(" 202 "));
}

TEST(PicturesOfJobs, AreNotDecodedOnceTheServerIsCutShort) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Server server(engine);
  const auto clients = clients_with_large_pictures(server, engine);
  RawClient last(server.port());
  send_damaged(last, server);
  server.service().stop();
  EXPECT_TRUE(last.read_until(" 503 ")) << last.received();
}

// They are not decoded either: that would take seconds.
TEST(PicturesOfJobs, GiveTheirPlacesBackWhenTheirClientsLeave) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Server server(engine);
  auto clients = clients_with_large_pictures(server, engine);
  clients.clear();
  EXPECT_TRUE(wait_until([&] { return server.http().num_connections() == 0; }));
  EXPECT_LT(server.service().status().waiting, kClients / 2);
}

// What was not begun is not answered, and lets go of its room.
TEST(PicturesOfJobs, MayStillWaitToBeDecodedWhenTheServerEnds) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  std::optional<Server> server;
  server.emplace(engine, Access(), HttpServerOptions{.stop_time = std::chrono::seconds(0)});
  const auto clients = clients_with_large_pictures(*server, engine);
  server.reset();
  int num_taken = 0;
  for (const auto& client : clients) num_taken += client->read_until(" 202 ") ? 1 : 0;
  EXPECT_LT(num_taken, kClients / 2) << "most were not decoded yet";
}

// Jobs are kept for those who come back, but not what they began with.
TEST(PicturesOfJobs, AreLetGoOfWhenTheJobEnds) {
  Job job("id", {.request = {.pictures = {.init = grey_picture(2, 2)}}});
  EXPECT_EQ(job.num_input_bytes(), 12u);
  EXPECT_TRUE(job.order().request.pictures.is_empty());
  job.finish({.state = JobState::kCancelled});
  EXPECT_TRUE(job.take_request().pictures.is_empty());
}

}  // namespace braid::serve::pictures_in_test
