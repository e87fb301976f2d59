/* A module of virtual tables for the tests, which may be written, and an automatic extension. The rows of a table are in the
** memory of the process, the same for each connection. As in extension.c, `api` has the functions in their order. */

#include <pthread.h>
#include <stdlib.h>

enum {
  CREATE_FUNCTION = 45,
  CREATE_MODULE = 47,
  DECLARE_VTAB = 50,
  RESULT_INT64 = 83,
  VALUE_INT64 = 107,
  VALUE_TYPE = 113,
  AUTO_EXTENSION = 192
};
enum { OK = 0, FULL = 13, NULL_TYPE = 5, OK_LOAD_PERMANENTLY = 256, MOST = 1000 };

typedef struct { const void *module; int references; char *message; } Table;
typedef struct { Table *table; int row; } Cursor;
typedef long long (*Value)(void *);

static void **api;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int used;
static struct { int is_there; long long value; } rows[MOST];

static int connect(void *db, void *aux, int count, const char *const *args, Table **table, char **message) {
  (void)aux, (void)count, (void)args, (void)message;
  int rc = ((int (*)(void *, const char *))api[DECLARE_VTAB])(db, "CREATE TABLE x (value INTEGER)");
  if (rc == OK) *table = calloc(1, sizeof(Table));
  return rc;
}

static int best_index(Table *table, void *index) { (void)table, (void)index; return OK; }
static int disconnect(Table *table) { free(table); return OK; }
static int open_cursor(Table *table, Cursor **cursor) { (void)table; *cursor = calloc(1, sizeof(Cursor)); return OK; }
static int close_cursor(Cursor *cursor) { free(cursor); return OK; }

static int next(Cursor *cursor) {
  pthread_mutex_lock(&lock);
  do cursor->row++; while (cursor->row <= used && !rows[cursor->row - 1].is_there);
  pthread_mutex_unlock(&lock);
  return OK;
}

static int filter(Cursor *cursor, int number, const char *text, int count, void **values) {
  (void)number, (void)text, (void)count, (void)values;
  cursor->row = 0;
  return next(cursor);
}

static int eof(Cursor *cursor) {
  pthread_mutex_lock(&lock);
  int is_over = cursor->row > used;
  pthread_mutex_unlock(&lock);
  return is_over;
}

static int column(Cursor *cursor, void *context, int number) {
  (void)number;
  pthread_mutex_lock(&lock);
  long long value = rows[cursor->row - 1].value;
  pthread_mutex_unlock(&lock);
  ((void (*)(void *, long long))api[RESULT_INT64])(context, value);
  return OK;
}

static int rowid(Cursor *cursor, long long *rowid) { *rowid = cursor->row; return OK; }

static int update(Table *table, int count, void **values, long long *rowid) {
  (void)table;
  Value value = (Value)api[VALUE_INT64];
  int is_new = ((int (*)(void *))api[VALUE_TYPE])(values[0]) == NULL_TYPE, rc = OK;
  pthread_mutex_lock(&lock);
  if (is_new && used == MOST) {
    rc = FULL;
  } else {
    int row = is_new ? used++ : (int)value(values[0]) - 1;
    rows[row].is_there = count > 1;
    if (count > 1) rows[row].value = value(values[2]);
    if (is_new) *rowid = row + 1;
  }
  pthread_mutex_unlock(&lock);
  return rc;
}

static const struct { int version; void *methods[19]; } module = {0, {
    connect, connect, best_index, disconnect, disconnect, open_cursor, close_cursor, filter, next, eof, column, rowid, update}};

int sqlite3_module_init(void *db, char **message, void **routines) {
  (void)message;
  api = routines;
  return ((int (*)(void *, const char *, const void *, void *))api[CREATE_MODULE])(db, "shared", &module, 0);
}

static long long connections;

static void count_connections(void *context, int count, void **values) {
  (void)count, (void)values;
  ((void (*)(void *, long long))api[RESULT_INT64])(context, __atomic_load_n(&connections, __ATOMIC_SEQ_CST));
}

static int on_each_connection(void *db, char **message, void **routines) {
  typedef int (*CreateFunction)(void *, const char *, int, int, void *, void *, void *, void *);
  (void)message;
  __atomic_add_fetch(&connections, 1, __ATOMIC_SEQ_CST);
  return ((CreateFunction)routines[CREATE_FUNCTION])(db, "connections", 0, 1, 0, count_connections, 0, 0);
}

int registers_for_each_connection(void *db, char **message, void **routines) {
  (void)db, (void)message;
  api = routines;
  int rc = ((int (*)(void *))api[AUTO_EXTENSION])(on_each_connection);
  return rc == OK ? OK_LOAD_PERMANENTLY : rc;
}
