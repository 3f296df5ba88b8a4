/* A module that knows nothing of snugly: other.read KEY returns the bytes at a key, other.write KEY VALUE puts some there.
 *
 * It declares what it uses of the server's interface, since its header is not everywhere. */

#include <stddef.h>
#include <string.h>

typedef struct Context Context;
typedef struct Text Text;
typedef struct Key Key;

static int (*get_api)(const char *, void *);
static Key *(*open_key)(Context *, Text *, int);
static void (*close_key)(Key *);
static char *(*bytes)(Key *, size_t *, int);
static int (*set)(Key *, Text *);
static int (*reply)(Context *, const char *, size_t);
static int (*reply_null)(Context *);
static int (*reply_ok)(Context *, const char *);
static int (*replicate)(Context *);
static int (*create)(Context *, const char *, int (*)(Context *, Text **, int), const char *, int, int, int);
static void (*attributes)(Context *, const char *, int, int);

static int read_command(Context *context, Text **arguments, int count) {
    Key *key = count == 2 ? open_key(context, arguments[1], 1) : NULL;
    if (key == NULL) return reply_null(context);
    size_t length;
    const char *start = bytes(key, &length, 1);
    reply(context, start, length);
    close_key(key);
    return 0;
}

static int write_command(Context *context, Text **arguments, int count) {
    if (count != 3) return reply_null(context);
    Key *key = open_key(context, arguments[1], 2);
    set(key, arguments[2]);
    close_key(key);
    replicate(context);
    return reply_ok(context, "OK");
}

int ValkeyModule_OnLoad(Context *context, Text **arguments, int count) {
    (void)arguments;
    (void)count;
    /* A context begins with the way to everything else. */
    memcpy(&get_api, context, sizeof get_api);
    get_api("ValkeyModule_OpenKey", &open_key);
    get_api("ValkeyModule_CloseKey", &close_key);
    get_api("ValkeyModule_StringDMA", &bytes);
    get_api("ValkeyModule_StringSet", &set);
    get_api("ValkeyModule_ReplyWithStringBuffer", &reply);
    get_api("ValkeyModule_ReplyWithNull", &reply_null);
    get_api("ValkeyModule_ReplyWithSimpleString", &reply_ok);
    get_api("ValkeyModule_ReplicateVerbatim", &replicate);
    get_api("ValkeyModule_CreateCommand", &create);
    get_api("ValkeyModule_SetModuleAttribs", &attributes);
    attributes(context, "other", 1, 1);
    if (create(context, "other.read", read_command, "readonly", 1, 1, 1) != 0) return 1;
    return create(context, "other.write", write_command, "write", 1, 1, 1);
}
