/* An extension of SQLite for the tests, with an entry point for each thing that an extension may do when it is loaded.
** It needs no header of SQLite: `api` has the functions in the order of `sqlite3_api_routines` in sqlite3ext.h, to which
** SQLite only ever appends. */

typedef void (*Function)(void *context, int count, void **values);
typedef int (*CreateFunction)(void *, const char *, int, int, void *, Function, void *, void *);

enum {
  BUSY_TIMEOUT = 14,
  COMMIT_HOOK = 40,
  CREATE_FUNCTION = 45,
  EXEC = 55,
  MPRINTF = 69,
  PROGRESS_HANDLER = 75,
  RESULT_INT64 = 83,
  SET_AUTHORIZER = 91,
  UPDATE_HOOK = 100,
  VALUE_INT64 = 107
};

static void **api;

static void twice(void *context, int count, void **values) {
  long long value = ((long long (*)(void *))api[VALUE_INT64])(values[0]);
  (void)count;
  ((void (*)(void *, long long))api[RESULT_INT64])(context, 2 * value);
}

/* SQLITE_UTF8, SQLITE_DETERMINISTIC, SQLITE_INNOCUOUS */
int sqlite3_extension_init(void *db, char **message, void **routines) {
  (void)message;
  api = routines;
  return ((CreateFunction)api[CREATE_FUNCTION])(db, "twice", 1, 1 | 0x800 | 0x200000, 0, twice, 0, 0);
}

int fails(void *db, char **message, void **routines) {
  (void)db;
  *message = ((char *(*)(const char *, ...))routines[MPRINTF])("%s", "planted");
  return 1;
}

static int one(void *context) {
  (void)context;
  return 1;
}

static int zero(void *context, int action, const char *a, const char *b, const char *c, const char *d) {
  (void)context, (void)action, (void)a, (void)b, (void)c, (void)d;
  return 0;
}

static void nothing(void *context, int action, const char *a, const char *b, long long rowid) {
  (void)context, (void)action, (void)a, (void)b, (void)rowid;
}

int sets_a_commit_hook(void *db, char **message, void **routines) {
  (void)message;
  ((void *(*)(void *, int (*)(void *), void *))routines[COMMIT_HOOK])(db, one, 0);
  return 0;
}

int sets_an_update_hook(void *db, char **message, void **routines) {
  typedef void (*Updated)(void *, int, const char *, const char *, long long);
  (void)message;
  ((void *(*)(void *, Updated, void *))routines[UPDATE_HOOK])(db, nothing, 0);
  return 0;
}

int sets_an_authorizer(void *db, char **message, void **routines) {
  typedef int (*Authorize)(void *, int, const char *, const char *, const char *, const char *);
  (void)message;
  return ((int (*)(void *, Authorize, void *))routines[SET_AUTHORIZER])(db, zero, 0);
}

int sets_handlers(void *db, char **message, void **routines) {
  (void)message;
  ((void (*)(void *, int, int (*)(void *), void *))routines[PROGRESS_HANDLER])(db, 1, one, 0);
  return ((int (*)(void *, int))routines[BUSY_TIMEOUT])(db, 0);
}

int attaches(void *db, char **message, void **routines) {
  typedef int (*Exec)(void *, const char *, void *, void *, char **);
  return ((Exec)routines[EXEC])(db, "ATTACH ':memory:' AS other", 0, 0, message);
}
